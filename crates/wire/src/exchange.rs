//! What a transaction may ask of a session: queue executions, exchange them for answers.

use std::{future::Future, time::Duration};

use crate::{answer::Answers, error::Error, statement::StatementId, value::Param};

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

    /// Names of the columns that a statement with [`Results::Text`] returns; none for others, and
    /// for statements without rows.
    fn columns(&self, _statement: StatementId) -> &[String] {
        &[]
    }

    /// Lets time pass with nothing queued, as a user between two statements of a transaction. Only
    /// scripts ask for it.
    ///
    /// # Errors
    ///
    /// This kind of session cannot wait.
    fn pause(&mut self, _time: Duration) -> impl Future<Output = Result<(), Error>> {
        std::future::ready(Err(Error::protocol("this session cannot pause in a transaction")))
    }
}
