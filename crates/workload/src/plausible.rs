//! Plausible answers: what a server could say to a statement, as bytes of the protocol, without a
//! database behind it. A null server sends them, so that a driver can be measured alone: number,
//! types and sizes of the rows are those of a real server, values only as far as a transaction
//! looks at them.

use std::fmt;

use wire::Param;

/// What answers one statement. Complete messages: rows in binary format and the command tag.
#[derive(Clone)]
pub enum Plausible {
    /// Always the same.
    Fixed(Vec<u8>),
    /// One of several, chosen by the parameters.
    Chosen {
        /// What there is to choose from.
        replies: Vec<Vec<u8>>,
        /// The choice; taken modulo the number of replies.
        choose: fn(Bound<'_>) -> usize,
    },
    /// Made from the parameters.
    Computed(fn(Bound<'_>, &mut Reply<'_>)),
}

impl Plausible {
    /// No row; `tag` as the server says it, e.g. `UPDATE 1`.
    #[must_use]
    pub fn done(tag: &str) -> Self {
        Self::Fixed(reply(|reply| reply.end(tag)))
    }

    /// The same rows whatever the parameters; `verb` is the first word of the statement.
    #[must_use]
    pub fn rows(verb: &str, rows: &[&[Param<'_>]]) -> Self {
        Self::Fixed(Self::written(verb, rows))
    }

    /// Bytes of such an answer, for [`Plausible::Chosen`].
    #[must_use]
    pub fn written(verb: &str, rows: &[&[Param<'_>]]) -> Vec<u8> {
        reply(|reply| {
            for row in rows {
                reply.row(row);
            }
            reply.count(verb);
        })
    }

    /// Appends the answer to an execution with these parameters.
    pub fn answer(&self, bound: Bound<'_>, out: &mut Vec<u8>) {
        match self {
            Self::Fixed(bytes) => out.extend_from_slice(bytes),
            Self::Chosen { replies, choose } => {
                if let Some(bytes) = replies.get(choose(bound) % replies.len().max(1)) {
                    out.extend_from_slice(bytes);
                }
            }
            Self::Computed(compute) => compute(bound, &mut Reply { out, rows: 0 }),
        }
    }
}

impl fmt::Debug for Plausible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => write!(f, "Fixed({} bytes)", bytes.len()),
            Self::Chosen { replies, .. } => write!(f, "Chosen({} replies)", replies.len()),
            Self::Computed(_) => write!(f, "Computed"),
        }
    }
}

fn reply(write: impl FnOnce(&mut Reply<'_>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut Reply { out: &mut out, rows: 0 });
    out
}

/// An answer being written.
#[derive(Debug)]
pub struct Reply<'a> {
    out: &'a mut Vec<u8>,
    rows: usize,
}

impl Reply<'_> {
    /// Adds a row.
    pub fn row(&mut self, fields: &[Param<'_>]) {
        let columns = u16::try_from(fields.len()).unwrap_or(u16::MAX);
        self.message(b'D', |out| {
            out.extend_from_slice(&columns.to_be_bytes());
            for field in fields {
                field.encode(out);
            }
        });
        self.rows += 1;
    }

    /// Ends the answer with the number of rows written, e.g. `SELECT 3`.
    pub fn count(&mut self, verb: &str) {
        let rows = self.rows;
        self.affected(verb, rows);
    }

    /// Ends the answer with a number of affected rows.
    pub fn affected(&mut self, verb: &str, rows: usize) {
        let oid = if verb == "INSERT" { " 0" } else { "" };
        self.end(&format!("{verb}{oid} {rows}"));
    }

    /// Ends the answer with a command tag.
    pub fn end(&mut self, tag: &str) {
        self.message(b'C', |out| {
            out.extend_from_slice(tag.as_bytes());
            out.push(0);
        });
    }

    fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        self.out.push(kind);
        let at = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        body(self.out);
        let length = u32::try_from(self.out.len() - at).unwrap_or(u32::MAX);
        self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Parameters of an execution, as Bind carries them: for each an `i32` length (-1 for NULL) and the
/// bytes. A parameter that is missing, NULL or of another type reads as nothing.
#[derive(Clone, Copy, Debug)]
pub struct Bound<'a>(pub &'a [u8]);

impl<'a> Bound<'a> {
    /// Bytes of the `n`-th parameter, from 0.
    #[must_use]
    pub fn bytes(self, n: usize) -> Option<&'a [u8]> {
        let mut rest = self.0;
        for at in 0..=n {
            let (length, tail) = rest.split_first_chunk::<4>()?;
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (value, tail) = tail.split_at_checked(length.unwrap_or(0))?;
            if at == n {
                return length.map(|_| value);
            }
            rest = tail;
        }
        None
    }

    /// An `int4`; 0 where there is none.
    #[must_use]
    pub fn i32(self, n: usize) -> i32 {
        let value = self.bytes(n).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        value.map_or(0, i32::from_be_bytes)
    }

    /// An `int4` as a choice: below 0 reads as 0.
    #[must_use]
    pub fn choice(self, n: usize) -> usize {
        usize::try_from(self.i32(n)).unwrap_or(0)
    }

    /// Number of elements of an array of one dimension.
    #[must_use]
    pub fn array_len(self, n: usize) -> usize {
        let count = self.bytes(n).and_then(|bytes| bytes.get(ARRAY_COUNT_AT..ARRAY_COUNT_AT + 4));
        let count = count.and_then(|bytes| <[u8; 4]>::try_from(bytes).ok());
        count.and_then(|bytes| usize::try_from(i32::from_be_bytes(bytes)).ok()).unwrap_or(0)
    }

    /// Elements of an `int4[]` of one dimension.
    pub fn i32s(self, n: usize) -> impl Iterator<Item = i32> + use<'a> {
        let elements = self.bytes(n).and_then(|bytes| bytes.get(ARRAY_ELEMENTS_AT..));
        elements
            .unwrap_or_default()
            .chunks_exact(8)
            .filter_map(|element| Some(i32::from_be_bytes(*element.last_chunk::<4>()?)))
    }
}

/// After the number of dimensions, the flag for NULLs and the type.
const ARRAY_COUNT_AT: usize = 12;
/// After the count and the lower bound; then for each element its length and its bytes.
const ARRAY_ELEMENTS_AT: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(params: &[Param<'_>]) -> Vec<u8> {
        let mut out = Vec::new();
        for param in params {
            param.encode(&mut out);
        }
        out
    }

    #[test]
    fn parameters_are_read_where_they_are_and_nothing_where_not() {
        let bytes = bound(&[Param::Null, Param::I32(7), Param::I32s(&[3, -4]), Param::Text("ab")]);
        let bound = Bound(&bytes);
        assert_eq!((bound.i32(0), bound.i32(1), bound.i32(3), bound.i32(9)), (0, 7, 0, 0));
        assert_eq!(bound.i32s(2).collect::<Vec<_>>(), [3, -4]);
        assert_eq!((bound.array_len(2), bound.array_len(1), bound.array_len(0)), (2, 0, 0));
        assert_eq!(bound.bytes(3), Some(&b"ab"[..]));
        assert_eq!(Bound(&bytes[..5]).bytes(1), None);
    }

    #[test]
    fn answers_are_messages_with_their_tags() {
        let plausible = Plausible::rows("INSERT", &[&[Param::I32(1), Param::Null]]);
        let mut out = Vec::new();
        plausible.answer(Bound(&[]), &mut out);
        let row = [&b"D\0\0\0\x12\0\x02\0\0\0\x04\0\0\0\x01"[..], &[255; 4]].concat();
        assert_eq!(out, [&row[..], b"C\0\0\0\x0fINSERT 0 1\0"].concat());
    }

    #[test]
    fn a_choice_is_taken_modulo_the_replies() {
        let replies = vec![b"a".to_vec(), b"b".to_vec()];
        let plausible = Plausible::Chosen { replies, choose: |bound| bound.choice(0) };
        let mut out = Vec::new();
        for value in [0, 1, 5, -3] {
            plausible.answer(Bound(&bound(&[Param::I32(value)])), &mut out);
        }
        assert_eq!(out, b"abba");
    }
}
