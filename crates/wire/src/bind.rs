//! Bind and Execute of prepared statements, with parameters in binary format, appended to a buffer
//! that the session sends as one write.

use bytes::BytesMut;
use postgres_protocol::message::frontend;

use crate::{
    error::Error,
    statement::{Kind, Results, Statement, StatementId},
    target::Prepare,
    value::{Decimal, Param},
};

/// Format of all results (at 3: 1 for binary, 0 for text), then Execute of the unnamed portal
/// without a limit of rows.
const RESULT_AND_EXECUTE: [u8; 14] = [0, 1, 0, 1, b'E', 0, 0, 0, 9, 0, 0, 0, 0, 0];

impl Kind {
    /// OID of the type, fixed in PostgreSQL's catalogue (`pg_type.dat`).
    #[must_use]
    pub const fn oid(self) -> u32 {
        match self {
            Self::I32 => 23,
            Self::I64 => 20,
            Self::F64 => 701,
            Self::Decimal => 1700,
            Self::Text => 25,
            Self::Timestamp => 1114,
            Self::I32s => 1007,
            Self::Decimals => 1231,
            Self::Texts => 1009,
            Self::Timestamps => 1115,
            Self::Inferred => 0,
        }
    }

    /// Its name in SQL, as PREPARE takes it.
    #[must_use]
    pub const fn sql_name(self) -> &'static str {
        match self {
            Self::I32 => "int4",
            Self::I64 => "int8",
            Self::F64 => "float8",
            Self::Decimal => "numeric",
            Self::Text => "text",
            Self::Timestamp => "timestamp",
            Self::I32s => "int4[]",
            Self::Decimals => "numeric[]",
            Self::Texts => "text[]",
            Self::Timestamps => "timestamp[]",
            Self::Inferred => "unknown",
        }
    }
}

impl Param<'_> {
    /// The type that this value has; `None` for NULL, which has any.
    #[must_use]
    pub const fn kind(&self) -> Option<Kind> {
        match self {
            Self::Null => None,
            Self::I32(_) => Some(Kind::I32),
            Self::I64(_) => Some(Kind::I64),
            Self::F64(_) => Some(Kind::F64),
            Self::Decimal(_) => Some(Kind::Decimal),
            Self::Text(_) => Some(Kind::Text),
            Self::Timestamp(_) => Some(Kind::Timestamp),
            Self::I32s(_) => Some(Kind::I32s),
            Self::Decimals(_) => Some(Kind::Decimals),
            Self::Texts(_) => Some(Kind::Texts),
            Self::Timestamps(_) => Some(Kind::Timestamps),
            Self::Inferred(_) => Some(Kind::Inferred),
        }
    }

    /// Appends the value as a field of a message: an `i32` length (-1 for NULL) and the bytes.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match *self {
            Self::Null => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            Self::I32(value) => fixed(out, value.to_be_bytes()),
            Self::F64(value) => fixed(out, value.to_be_bytes()),
            Self::I64(value) | Self::Timestamp(crate::value::Timestamp(value)) => {
                fixed(out, value.to_be_bytes());
            }
            Self::Decimal(value) => sized(out, |out| value.encode(out)),
            Self::Text(value) | Self::Inferred(value) => {
                sized(out, |out| out.extend_from_slice(value.as_bytes()));
            }
            Self::I32s(values) => array(out, Kind::I32, values, |out, value: &i32| {
                out.extend_from_slice(&value.to_be_bytes());
            }),
            Self::Decimals(values) => {
                array(out, Kind::Decimal, values, |out, value: &Decimal| value.encode(out));
            }
            Self::Timestamps(values) => {
                array(out, Kind::Timestamp, values, |out, value: &crate::value::Timestamp| {
                    out.extend_from_slice(&value.0.to_be_bytes());
                });
            }
            Self::Texts(values) => array(out, Kind::Text, values, |out, value: &&str| {
                out.extend_from_slice(value.as_bytes());
            }),
        }
    }
}

fn fixed<const N: usize>(out: &mut Vec<u8>, bytes: [u8; N]) {
    out.extend_from_slice(&count(N).to_be_bytes());
    out.extend_from_slice(&bytes);
}

/// Appends what `write` appends, preceded by its length.
fn sized(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = count(out.len() - at - 4);
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// One dimension from 1, no NULLs.
fn array<T>(out: &mut Vec<u8>, element: Kind, values: &[T], write: impl Fn(&mut Vec<u8>, &T)) {
    sized(out, |out| {
        let dimensions = i32::from(!values.is_empty());
        out.extend_from_slice(&dimensions.to_be_bytes());
        out.extend_from_slice(&0_i32.to_be_bytes());
        out.extend_from_slice(&element.oid().to_be_bytes());
        if values.is_empty() {
            return;
        }
        out.extend_from_slice(&count(values.len()).to_be_bytes());
        out.extend_from_slice(&1_i32.to_be_bytes());
        for value in values {
            sized(out, |out| write(out, value));
        }
    });
}

/// PostgreSQL's lengths and counts are `i32`; nothing here comes near its end.
///
/// # Panics
///
/// A value of more than 2 GiB: a bug of the caller.
fn count(length: usize) -> i32 {
    assert!(i32::try_from(length).is_ok(), "{length} bytes or elements fit in an i32");
    i32::try_from(length).unwrap_or(i32::MAX)
}

/// What a statement does to the transaction, as far as its first word tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Begins,
    Commits,
    Other,
}

impl Effect {
    fn of(sql: &str) -> Self {
        let word = sql.split(|c: char| !c.is_ascii_alphabetic()).find(|word| !word.is_empty());
        match word.map(str::to_ascii_uppercase).as_deref() {
            Some("BEGIN" | "START") => Self::Begins,
            Some("COMMIT" | "END") => Self::Commits,
            _ => Self::Other,
        }
    }
}

/// A statement as the session keeps it: the constant bytes of its Bind, and what it declared.
#[derive(Debug)]
pub(crate) struct Prepared {
    name: String,
    params: Vec<Kind>,
    /// A whole Parse that goes before each Bind; empty for a statement with a name.
    parse: Vec<u8>,
    /// From the portal's name (empty) to the count of parameters.
    head: Vec<u8>,
    tail: [u8; 14],
    pub(crate) effect: Effect,
    /// Names of the columns of a statement with text results, once it is prepared.
    pub(crate) columns: Vec<String>,
}

impl Prepared {
    pub(crate) fn all(statements: &[Statement], how: Prepare) -> Result<Vec<Self>, Error> {
        statements.iter().enumerate().map(|(id, s)| Self::new(id, s, how)).collect()
    }

    fn new(id: usize, statement: &Statement, how: Prepare) -> Result<Self, Error> {
        let name = server_name(id, how);
        let mut parse = BytesMut::new();
        if how == Prepare::Unnamed {
            let oids = statement.params.iter().map(|kind| kind.oid());
            frontend::parse(&name, &statement.sql, oids, &mut parse)
                .map_err(|e| Error::io(format!("prepare {}", statement.name), e))?;
        }
        let mut head = vec![0];
        head.extend_from_slice(name.as_bytes());
        head.push(0);
        let params = u16::try_from(statement.params.len()).unwrap_or(u16::MAX).to_be_bytes();
        if statement.params.contains(&Kind::Inferred) {
            head.extend_from_slice(&params);
            for kind in &statement.params {
                head.extend_from_slice(&[0, u8::from(*kind != Kind::Inferred)]);
            }
        } else {
            // One format code for all parameters: binary.
            head.extend_from_slice(&[0, 1, 0, 1]);
        }
        head.extend_from_slice(&params);
        let mut tail = RESULT_AND_EXECUTE;
        tail[3] = u8::from(statement.results == Results::Binary);
        Ok(Self {
            name: statement.name.clone(),
            params: statement.params.clone(),
            parse: parse.to_vec(),
            head,
            tail,
            effect: Effect::of(&statement.sql),
            columns: Vec::new(),
        })
    }

    /// Appends Bind and Execute.
    ///
    /// # Panics
    ///
    /// Parameters that are not those declared: a bug of the workload, which the server would take
    /// for other values.
    pub(crate) fn bind(&self, out: &mut Vec<u8>, params: &[Param<'_>]) {
        let fits = params.len() == self.params.len()
            && params.iter().zip(&self.params).all(|(p, k)| p.kind().is_none_or(|kind| kind == *k));
        assert!(fits, "{} takes {:?}, got {params:?}", self.name, self.params);
        out.extend_from_slice(&self.parse);
        out.push(b'B');
        let at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.head);
        for param in params {
            param.encode(out);
        }
        // The length counts itself and the result format, not the type byte.
        let length = count(out.len() - at + 4);
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&self.tail);
    }
}

/// The name under which the server knows the `id`-th statement; no other client's names begin so.
pub(crate) fn server_name(id: usize, how: Prepare) -> String {
    match how {
        Prepare::Named => format!("pgdyno_{id}"),
        Prepare::Unnamed => String::new(),
    }
}

impl StatementId {
    pub(crate) fn index(self) -> usize {
        usize::from(self.0)
    }
}
