//! Which errors repeat a transaction, how often, and what the others mean for their request.

use tokio::io::{AsyncRead, AsyncWrite};
use wire::{Error, Session, Timestamp, Work};
use workload::{Outcome, Workload};

/// How a request ended.
#[derive(Debug)]
pub enum Ending {
    /// It was performed to its end.
    Done(Outcome),
    /// An error ended it.
    Failed(Box<Failure>),
}

/// Why a request failed.
#[derive(Debug)]
pub struct Failure {
    /// The SQLSTATE, or `connection lost`, `protocol`, `answer`.
    pub class: String,
    /// The error's text.
    pub text: String,
    /// The commit was under way: nobody knows whether it happened.
    pub unknown: bool,
    /// The session is of no more use.
    pub lost: bool,
}

/// Repetitions by SQLSTATE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retries {
    /// 40001, serialisation failure.
    pub serialization: u64,
    /// 40P01, deadlock.
    pub deadlock: u64,
}

impl Retries {
    fn of(error: &Error) -> Self {
        let deadlock = u64::from(error.sqlstate() == Some("40P01"));
        Self { serialization: 1 - deadlock, deadlock }
    }
}

/// Performs a request, again after errors that allow it. What is sent is the same each time; the
/// request keeps its slot and its due time. `repeated` hears of every repetition when it begins.
/// Returns how it ended, and the statements and round trips of the last attempt.
pub async fn perform<W, S>(
    workload: &W,
    session: &mut Session<S>,
    request: &W::Request,
    now: Timestamp,
    retries_max: u32,
    mut repeated: impl FnMut(Retries),
) -> (Ending, Work)
where
    W: Workload,
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut retries = 0;
    loop {
        let before = session.work();
        let error = match workload.perform(session, request, now).await {
            Ok(outcome) => return (Ending::Done(outcome), since(before, session.work())),
            Err(error) => error,
        };
        let mut failure = judge(&error, session);
        if !failure.lost
            && let Err(gone) = session.rollback().await
        {
            // The transaction did not commit, so its fate is known; the session is gone.
            failure.lost = true;
            failure.text = format!("{}, then {gone}", failure.text);
        }
        if failure.lost || !error.is_retryable() || retries == retries_max {
            return (Ending::Failed(Box::new(failure)), since(before, session.work()));
        }
        retries += 1;
        repeated(Retries::of(&error));
    }
}

fn judge<S: AsyncRead + AsyncWrite + Unpin>(error: &Error, session: &Session<S>) -> Failure {
    let lost = error.is_closed() || !session.is_usable();
    let class = match error.sqlstate() {
        _ if error.is_closed() => "connection lost",
        Some(sqlstate) => sqlstate,
        None if lost => "protocol",
        None => "answer",
    };
    Failure {
        class: class.to_owned(),
        text: error.to_string(),
        unknown: lost && session.may_have_committed(),
        lost,
    }
}

fn since(before: Work, after: Work) -> Work {
    Work {
        executions: after.executions - before.executions,
        exchanges: after.exchanges - before.exchanges,
    }
}
