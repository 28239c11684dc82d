//! What a transaction may ask of a session: queue executions, exchange them for answers.

use std::future::Future;

use crate::{Answers, Error, Param};

/// Type of a declared parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `int4`.
    I32,
    /// `int8`.
    I64,
    /// `numeric`.
    Decimal,
    /// `text`.
    Text,
    /// `timestamp`.
    Timestamp,
    /// `int4[]`.
    I32s,
    /// `numeric[]`.
    Decimals,
    /// `text[]`.
    Texts,
}

/// A statement that every session of a run prepares once, right after it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Short name for reports and errors, e.g. `stock_update_03`.
    pub name: String,
    /// SQL with `$1`, `$2`, …
    pub sql: String,
    /// Types of the parameters, in order. Results come in binary format.
    pub params: Vec<Kind>,
}

/// Position of a statement in the list that the session prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementId(pub u16);

/// One connection, seen by a transaction: sends executions and reads their answers.
///
/// Face `statement` exchanges after every queued execution, face `pipeline` after as many as data
/// dependencies allow.
pub trait Exchange {
    /// Appends one execution of a prepared statement; nothing is sent yet.
    fn queue(&mut self, statement: StatementId, params: &[Param<'_>]);

    /// Sends what is queued with one Sync and reads until the server is ready again.
    ///
    /// The answers are those of the queued executions, in order. They live until the next call.
    ///
    /// # Errors
    ///
    /// The server's error of the first execution that failed (the later ones were skipped), or a
    /// broken connection. After a server error the session is usable, an open transaction failed.
    fn exchange(&mut self) -> impl Future<Output = Result<&Answers, Error>>;
}
