//! Answers to a batch of executions, kept as the bytes that arrived, decoded where they are read.

use crate::{
    error::Error,
    fields::Fields,
    value::{Decimal, Timestamp},
};

/// The answers of one exchange. Buffers are reused from exchange to exchange.
#[derive(Debug, Default)]
pub struct Answers {
    bytes: Vec<u8>,
    row_ends: Vec<usize>,
    ends: Vec<End>,
}

#[derive(Clone, Copy, Debug)]
struct End {
    rows: usize,
    affected: u64,
}

impl Answers {
    /// Forgets all answers, keeps the buffers.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.row_ends.clear();
        self.ends.clear();
    }

    /// Adds a row to the answer being received: the body of a DataRow message after its field
    /// count, i.e. for each field an `i32` length (-1 for NULL) and the bytes.
    pub fn push_row(&mut self, fields: &[u8]) {
        self.bytes.extend_from_slice(fields);
        self.row_ends.push(self.bytes.len());
    }

    /// Ends the answer being received; `affected` is the count of its command tag.
    pub fn finish(&mut self, affected: u64) {
        self.ends.push(End { rows: self.row_ends.len(), affected });
    }

    /// Number of answers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no answer.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The answer to the `n`-th execution queued.
    ///
    /// # Panics
    ///
    /// If fewer were queued: a bug of the caller.
    #[must_use]
    pub fn get(&self, n: usize) -> Answer<'_> {
        let end = self.ends[n];
        let first = if n == 0 { 0 } else { self.ends[n - 1].rows };
        Answer { answers: self, first, rows: end.rows - first, affected: end.affected }
    }
}

/// The answer to one execution.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    answers: &'a Answers,
    first: usize,
    rows: usize,
    affected: u64,
}

impl<'a> Answer<'a> {
    /// Rows inserted, updated, deleted or selected, by the command tag.
    #[must_use]
    pub fn affected(&self) -> u64 {
        self.affected
    }

    /// Number of rows returned.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether no row was returned.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The `n`-th row, if there are so many.
    #[must_use]
    pub fn row(&self, n: usize) -> Option<Row<'a>> {
        (n < self.rows).then(|| {
            let at = self.first + n;
            let start = if at == 0 { 0 } else { self.answers.row_ends[at - 1] };
            Row { fields: &self.answers.bytes[start..self.answers.row_ends[at]] }
        })
    }

    /// All rows, in order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'a>> + use<'a> {
        let this = *self;
        (0..this.rows).filter_map(move |n| this.row(n))
    }
}

/// One row in binary format.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    fields: &'a [u8],
}

impl<'a> Row<'a> {
    /// The columns, to be read in order.
    #[must_use]
    pub fn fields(&self) -> Fields<'a> {
        Fields::new(self.fields)
    }

    /// Bytes of a column, `None` for NULL.
    ///
    /// # Errors
    ///
    /// The row has no such column, or is cut short.
    pub fn bytes(&self, column: usize) -> Result<Option<&'a [u8]>, Error> {
        let mut rest = self.fields;
        for at in 0..=column {
            let (head, tail) =
                rest.split_first_chunk::<4>().ok_or_else(|| Error::column(column))?;
            let length = i32::from_be_bytes(*head);
            let Ok(length) = usize::try_from(length) else {
                if at == column {
                    return Ok(None);
                }
                rest = tail;
                continue;
            };
            let (value, tail) =
                tail.split_at_checked(length).ok_or_else(|| Error::column(column))?;
            if at == column {
                return Ok(Some(value));
            }
            rest = tail;
        }
        Err(Error::column(column))
    }

    fn fixed<const N: usize>(&self, column: usize) -> Result<[u8; N], Error> {
        let bytes = self.bytes(column)?.ok_or_else(|| Error::column(column))?;
        <[u8; N]>::try_from(bytes).map_err(|_| Error::column(column))
    }

    /// An `int4` that is not NULL.
    ///
    /// # Errors
    ///
    /// No such column, NULL, or another type.
    pub fn i32(&self, column: usize) -> Result<i32, Error> {
        self.fixed(column).map(i32::from_be_bytes)
    }

    /// An `int8` that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Row::i32`].
    pub fn i64(&self, column: usize) -> Result<i64, Error> {
        self.fixed(column).map(i64::from_be_bytes)
    }

    /// A `timestamp` that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Row::i32`].
    pub fn timestamp(&self, column: usize) -> Result<Timestamp, Error> {
        self.i64(column).map(Timestamp)
    }

    /// A `numeric` that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Row::i32`]; also a value that an `i64` of its display scale cannot hold.
    pub fn decimal(&self, column: usize) -> Result<Decimal, Error> {
        let bytes = self.bytes(column)?.ok_or_else(|| Error::column(column))?;
        Decimal::decode(bytes).ok_or_else(|| Error::column(column))
    }

    /// A string that is not NULL.
    ///
    /// # Errors
    ///
    /// As [`Row::i32`]; also text that is not UTF-8.
    pub fn text(&self, column: usize) -> Result<&'a str, Error> {
        let bytes = self.bytes(column)?.ok_or_else(|| Error::column(column))?;
        std::str::from_utf8(bytes).map_err(|_| Error::column(column))
    }
}
