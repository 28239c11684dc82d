//! What a run measured, as JSON.

use std::collections::BTreeMap;

use serde::Serialize;
use workload::{AuditLine, Workload};

use crate::{
    course::{Course, Shared, Window},
    cpu::{ClientCost, nanos},
    error::RunError,
    histogram::{Summary, encode},
    meter::{Counts, KindMeter, Meter, Seconds},
};

const VERSION: u32 = 1;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// As planned.
    Complete,
    /// Somebody asked for an early end.
    Stopped,
    /// No server could be reached any more.
    GaveUp,
}

/// One kind of transaction.
#[derive(Debug, Serialize)]
pub struct KindResult {
    /// Its name.
    pub name: String,
    /// Outcomes in the window.
    pub window: Counts,
    /// Outcomes of the whole run.
    pub run: Counts,
    /// Histogram of response times in the window, base64 of V2 deflate, ns.
    pub response: String,
    /// Histogram of service times, likewise.
    pub service: String,
    /// Response times at a glance.
    pub response_ns: Summary,
    /// Service times at a glance.
    pub service_ns: Summary,
}

/// Counts per second from `start_unix_ns`; the last second may be cut short.
#[derive(Debug, Serialize)]
pub struct SecondsResult {
    /// Begin of the first second: that of the warm-up.
    pub start_unix_ns: u64,
    /// By kind.
    pub committed: BTreeMap<String, Vec<u64>>,
    /// Rolled back on purpose.
    pub rolled_back: Vec<u64>,
    /// Failed.
    pub failed: Vec<u64>,
    /// Repeated.
    pub retries: Vec<u64>,
}

/// Failures of one class.
#[derive(Debug, Serialize)]
pub struct ErrorResult {
    /// The SQLSTATE, or `connection lost`, `protocol`, `answer`.
    pub sqlstate: String,
    /// How many requests.
    pub count: u64,
    /// Text of one.
    pub example: String,
}

/// What a run measured.
#[derive(Debug, Serialize)]
pub struct RunResult {
    /// Of this format.
    pub version: u32,
    /// How the run ended.
    pub outcome: RunOutcome,
    /// Why it was given up.
    pub error: Option<String>,
    /// Begin of the warm-up.
    pub started_unix_ns: u64,
    /// Begin and end of the window.
    pub window_unix_ns: [u64; 2],
    /// Its length; shorter than planned if the run was stopped.
    pub window_s: f64,
    /// By kind of transaction.
    pub kinds: Vec<KindResult>,
    /// Over time.
    pub seconds: SecondsResult,
    /// Of the whole run.
    pub errors: Vec<ErrorResult>,
    /// Lost connections that were replaced.
    pub reconnects: u64,
    /// Cost of the driver in the window.
    pub client: ClientCost,
    /// Inputs of the window against their bands.
    pub audit: Vec<AuditLine>,
    /// Of transactions that came to their end in the window, last attempts only.
    pub statements_per_transaction: f64,
    /// Likewise.
    pub round_trips_per_transaction: f64,
}

impl RunResult {
    /// Puts together what the threads counted.
    ///
    /// # Errors
    ///
    /// A histogram cannot be written.
    pub fn new<W: Workload>(
        workload: &W,
        meter: &Meter<W::Audit>,
        course: &Course,
        shared: &Shared,
        client: ClientCost,
    ) -> Result<Self, RunError> {
        let error = shared.gave_up();
        let outcome = match &error {
            Some(_) => RunOutcome::GaveUp,
            None if shared.is_stopped() => RunOutcome::Stopped,
            None => RunOutcome::Complete,
        };
        let names = workload.kinds();
        let kinds = names.iter().zip(&meter.kinds).map(|(name, kind)| KindResult::new(name, kind));
        let window = measured(course, shared);
        let ended: u64 = meter.kinds.iter().map(|kind| kind.response.len()).sum();
        Ok(Self {
            version: VERSION,
            outcome,
            error,
            started_unix_ns: course.start_unix_ns,
            window_unix_ns: [course.unix_ns(window.from_ns), course.unix_ns(window.until_ns)],
            window_s: nanos(window.until_ns - window.from_ns),
            kinds: kinds.collect::<Result<_, _>>()?,
            seconds: SecondsResult::new(names, meter, course, window),
            errors: errors(meter),
            reconnects: shared.reconnects(),
            client,
            audit: workload.audit_lines(&meter.audit),
            statements_per_transaction: ratio(meter.work.executions, ended),
            round_trips_per_transaction: ratio(meter.work.exchanges, ended),
        })
    }
}

/// The window as it was; of no length at its planned begin when the run was stopped before.
fn measured(course: &Course, shared: &Shared) -> Window {
    let from_ns = course.window.from_ns.min(shared.until_ns().max(course.start_ns));
    Window { from_ns, until_ns: shared.until_ns().max(from_ns) }
}

fn errors<A>(meter: &Meter<A>) -> Vec<ErrorResult> {
    let result = |(class, failures): (&String, &crate::meter::Failures)| ErrorResult {
        sqlstate: class.clone(),
        count: failures.count,
        example: failures.example.clone(),
    };
    meter.errors.iter().map(result).collect()
}

impl KindResult {
    fn new(name: &str, meter: &KindMeter) -> Result<Self, RunError> {
        Ok(Self {
            name: name.to_owned(),
            window: meter.window,
            run: meter.run,
            response: encode(&meter.response)?,
            service: encode(&meter.service)?,
            response_ns: Summary::of(&meter.response),
            service_ns: Summary::of(&meter.service),
        })
    }
}

impl SecondsResult {
    /// All columns are of one length: to the end of the window, or to the last event after it.
    fn new<A>(names: &[&str], meter: &Meter<A>, course: &Course, window: Window) -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        let others = [&meter.rolled_back, &meter.failed, &meter.retries];
        let lasting_ns = window.until_ns.saturating_sub(course.start_ns);
        let length = (meter.committed.iter().chain(others))
            .map(|seconds| seconds.0.len())
            .chain([usize::try_from(lasting_ns.div_ceil(SECOND_NS)).unwrap_or(0)])
            .max()
            .unwrap_or(0);
        let column = |seconds: &Seconds| {
            let mut column = seconds.0.clone();
            column.resize(length, 0);
            column
        };
        let committed = names.iter().zip(&meter.committed);
        Self {
            start_unix_ns: course.start_unix_ns,
            committed: committed.map(|(name, s)| ((*name).to_owned(), column(s))).collect(),
            rolled_back: column(&meter.rolled_back),
            failed: column(&meter.failed),
            retries: column(&meter.retries),
        }
    }
}

fn ratio(sum: u64, count: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts of one run stay below 2^52")]
    let (sum, count) = (sum as f64, count as f64);
    if count > 0.0 { sum / count } else { 0.0 }
}
