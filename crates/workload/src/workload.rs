//! What every workload is to the driver: requests from a seed, statements, transactions over a
//! session, and an audit of what was asked for. No workload is known here.

use std::future::Future;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use wire::{Error, Exchange, Statement, Timestamp};

use crate::{plausible::Plausible, witness::Witness};

/// How a transaction that was performed to its end came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Committed.
    Committed,
    /// Committed, though some of its parts found nothing to do, as the workload's text permits: a
    /// TPC-C Delivery whose district had no undelivered order.
    CommittedInPart {
        /// Parts that found nothing to do.
        skipped: u32,
    },
    /// Rolled back on purpose, as the workload's text demands.
    RolledBack,
}

impl Outcome {
    /// Whether the transaction was committed, wholly or in part.
    #[must_use]
    pub fn is_committed(self) -> bool {
        !matches!(self, Self::RolledBack)
    }
}

/// What a terminal asks for next, as far as the driver must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Index into [`Workload::kinds`].
    pub kind: usize,
    /// Time the terminal spends keying before the request is due, in ns.
    pub keying_ns: u64,
    /// Time the terminal thinks after the answer, in ns.
    pub think_ns: u64,
    /// The terminal does not wait for this request: it is queued and performed in the background.
    pub deferred: bool,
}

/// One line of the input audit: a measured share against its permitted band.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, schemars::JsonSchema)]
pub struct AuditLine {
    /// What was measured, e.g. `remote order lines`.
    pub name: String,
    /// The clause or rule that sets the band.
    pub source: String,
    /// The measured value.
    pub measured: f64,
    /// Observations behind it.
    pub n: u64,
    /// Lowest permitted value.
    pub low: f64,
    /// Highest permitted value.
    pub high: f64,
    /// Unit of the three values: `1` for shares, or a word such as `lines`.
    pub unit: String,
}

/// Counts what was really asked for, so that the report can prove it. As text it goes from a host
/// that drove a part of the load to where all are added.
pub trait Audit: Default + Send + Serialize + DeserializeOwned + 'static {
    /// The request type of the workload.
    type Request;
    /// Adds a finished request.
    fn add(&mut self, request: &Self::Request, outcome: Outcome);
    /// Adds another thread's counts.
    fn merge(&mut self, other: &Self);
}

/// A load for a database that was filled by the same workload.
pub trait Workload: Send + Sync + 'static {
    /// Everything that a transaction needs to know; a function of (seed, terminal, number).
    type Request: Send + 'static;
    /// The audit of the requests.
    type Audit: Audit<Request = Self::Request>;

    /// Names of the transaction kinds, in the order of their index.
    fn kinds(&self) -> &[String];

    /// Statements that a session prepares when it connects.
    fn statements(&self) -> &[Statement];

    /// SQL that must have run in the database before sessions prepare their statements. Whoever
    /// drives the workload runs it once, in order, over a connection with [`Workload::settings`].
    fn setup(&self) -> Vec<String> {
        Vec::new()
    }

    /// Server settings, name and value, that the workload's sessions need beside those of the
    /// connection.
    fn settings(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// The number under which requests know a terminal of a part of the load, `number` of `all` of
    /// that part's: other parts have other terminals, or all would ask for the same, and nothing
    /// asked for would be independent of the rest.
    fn terminal(&self, part: u32, number: u32, all: u32) -> u32 {
        number.wrapping_add(part.wrapping_mul(all))
    }

    /// The `number`-th request of a terminal (both from 0), and when it is due.
    fn request(&self, terminal: u32, number: u64) -> (Self::Request, Timing);

    /// The timing alone of the same request: it is asked for when a terminal begins to wait, the
    /// request itself when it is performed.
    fn timing(&self, terminal: u32, number: u64) -> Timing {
        self.request(terminal, number).1
    }

    /// A hash of everything that the request asks for, for the digest that proves that two runs
    /// asked for the same. Without one the digest covers terminal, number and kind.
    fn digest(&self, _request: &Self::Request) -> u64 {
        0
    }

    /// What the request leaves in the database if it is committed with this time; `None`: nothing,
    /// or nothing by which it could be told from others.
    fn witness(&self, _request: &Self::Request, _now: Timestamp) -> Option<Witness> {
        None
    }

    /// Performs a request once, from BEGIN to COMMIT or ROLLBACK. `now` is the time to be stored
    /// as entry date. The caller keeps time and decides about retries.
    ///
    /// # Errors
    ///
    /// The session's error, or a state that the workload's data cannot have. The transaction may
    /// still be open then: the caller rolls back.
    fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &Self::Request,
        now: Timestamp,
    ) -> impl Future<Output = Result<Outcome, Error>>;

    /// What a null server answers to a statement of this workload; `None`: nothing is known.
    fn plausible(&self, _statement: &Statement) -> Option<Plausible> {
        None
    }

    /// The audit as lines of the report, with their permitted bands.
    fn audit_lines(&self, audit: &Self::Audit) -> Vec<AuditLine>;
}
