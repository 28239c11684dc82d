//! Which errors repeat a transaction, how often, and what the others mean for their request.

use std::time::Duration;

use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::sleep,
};
use wire::{Error, Session, Timestamp, Work};
use workload::{Outcome, Workload, digest::mix};

use crate::{clock::Clock, measure::statements::Stopwatch};

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
    /// A part of it is committed.
    pub partly: bool,
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

/// How a request may be repeated.
#[derive(Clone, Copy, Debug)]
pub struct Repetition {
    /// Most repetitions.
    pub most: u32,
    /// Seed, terminal and number: the pauses follow from them.
    pub ident: [u64; 3],
}

/// The longest pause before a repetition is below this.
const PAUSE_MAX_MS: u64 = 32;

impl Repetition {
    /// The pause before the `n`-th repetition, from 1: none before the first, which mostly
    /// succeeds; then a random number of milliseconds up to 1, 3, 7, 15, 31, so that requests that
    /// met once do not meet again. All ten take 90 ms on average: a connection is never kept for
    /// long.
    fn pause(&self, n: u32) -> Duration {
        let below = (1 << (n - 1).min(63)).min(PAUSE_MAX_MS);
        let [seed, terminal, number] = self.ident;
        Duration::from_millis(mix(&[seed, terminal, number, n.into()]) % below)
    }
}

/// Performs a request, again after errors that allow it. What is sent is the same each time; the
/// request keeps its slot and its due time. `repeated` hears of every repetition beforehand.
/// Returns how it ended, and the statements and round trips of the last attempt.
pub async fn until_done<W, S, K>(
    workload: &W,
    session: &mut Session<S>,
    request: &W::Request,
    now: Timestamp,
    repetition: Repetition,
    mut watch: Stopwatch<'_, K>,
    mut repeated: impl FnMut(Retries),
) -> (Ending, Work)
where
    W: Workload,
    S: AsyncRead + AsyncWrite + Unpin,
    K: Clock,
{
    let mut retries = 0;
    loop {
        let before = session.work();
        let error = match workload.perform(&mut watch.watch(session), request, now).await {
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
        if failure.lost || !error.is_retryable() || retries == repetition.most {
            return (Ending::Failed(Box::new(failure)), since(before, session.work()));
        }
        retries += 1;
        repeated(Retries::of(&error));
        let pause = repetition.pause(retries);
        if !pause.is_zero() {
            sleep(pause).await;
        }
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
        text: match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        },
        unknown: lost && session.may_have_committed(),
        partly: error.is_partly_committed(),
        lost,
    }
}

fn since(before: Work, after: Work) -> Work {
    Work {
        executions: after.executions - before.executions,
        exchanges: after.exchanges - before.exchanges,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_stay_short_and_follow_from_the_request() {
        let of = |number: u64| Repetition { most: 10, ident: [1, 2, number] };
        let mean_ms = |n: u32| {
            let sum: u128 = (0..1000).map(|number| of(number).pause(n).as_millis()).sum();
            sum / 1000
        };
        assert_eq!((0..1000).map(|number| of(number).pause(1)).max(), Some(Duration::ZERO));
        for (n, low, high) in [(3, 1, 1), (4, 3, 3), (5, 6, 8), (6, 14, 17), (10, 14, 17)] {
            assert!((low..=high).contains(&mean_ms(n)), "{n}: {} ms", mean_ms(n));
        }
        for n in 1..200 {
            assert!(of(7).pause(n) < Duration::from_millis(PAUSE_MAX_MS));
            assert_eq!(of(7).pause(n), of(7).pause(n));
        }
        assert!((0..99).any(|number| of(number).pause(9) != of(number + 1).pause(9)));
    }
}
