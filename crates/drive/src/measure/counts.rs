//! Outcomes of a kind of transaction: no request is lost or counted twice. No times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use workload::Outcome;

use crate::connection::retry::{Ending, Retries};

/// Outcomes of a kind of transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Counts {
    /// Requests: those carried in, and those that became due.
    pub due: u64,
    /// Committed.
    pub succeeded: u64,
    /// Rolled back on purpose.
    pub rolled_back: u64,
    /// Ended by an error.
    pub failed: u64,
    /// The part of `failed` whose commit may have happened.
    pub unknown: u64,
    /// Left out by the schedule, whose queue was full; a closed loop leaves out nothing.
    pub skipped: u64,
    /// Carried out: still waiting or in flight at the end.
    pub unfinished: u64,
    /// The part of the window's `unfinished` that was answered in the drain.
    pub drained: u64,
    /// The part of `unfinished` that had no answer when the drain ended.
    pub unanswered: u64,
    /// The part of `unanswered` that a connection took up before the window ended: all through the
    /// drain the server was silent.
    pub stuck: u64,
    /// Repeated after a serialisation failure.
    pub retries_40001: u64,
    /// Repeated after a deadlock.
    pub retries_40p01: u64,
}

impl Counts {
    /// # Panics
    ///
    /// When a request was lost or counted twice: a bug of the driver, and no number of it is worth
    /// anything then.
    pub fn assert_conserved(&self, what: &str) {
        let ended = self.succeeded + self.rolled_back + self.failed + self.skipped;
        assert_eq!(self.due, ended + self.unfinished, "requests of {what} are conserved: {self:?}");
        assert!(self.unknown <= self.failed, "unknown is a part of failed: {self:?}");
        assert!(self.drained + self.unanswered <= self.unfinished, "parts of unfinished: {self:?}");
        assert!(self.stuck <= self.unanswered, "stuck is a part of unanswered: {self:?}");
    }

    pub(crate) fn end(&mut self, ending: &Ending) {
        match ending {
            Ending::Done(Outcome::RolledBack) => self.rolled_back += 1,
            Ending::Done(_) => self.succeeded += 1,
            Ending::Failed(failure) => {
                self.failed += 1;
                self.unknown += u64::from(failure.unknown);
            }
        }
    }

    pub(crate) fn give_up(&mut self, is_stuck: bool) {
        self.unfinished += 1;
        self.unanswered += 1;
        self.stuck += u64::from(is_stuck);
    }

    pub(crate) fn retry(&mut self, retries: Retries) {
        self.retries_40001 += retries.serialization;
        self.retries_40p01 += retries.deadlock;
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.due += other.due;
        self.succeeded += other.succeeded;
        self.rolled_back += other.rolled_back;
        self.failed += other.failed;
        self.unknown += other.unknown;
        self.skipped += other.skipped;
        self.unfinished += other.unfinished;
        self.drained += other.drained;
        self.unanswered += other.unanswered;
        self.stuck += other.stuck;
        self.retries_40001 += other.retries_40001;
        self.retries_40p01 += other.retries_40p01;
    }
}
