//! What a run measured, as JSON.

pub mod merge;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use workload::{AuditLine, Workload};

use crate::{
    connection::outages::GapResult,
    error::RunError,
    measure::{
        counts::Counts,
        cpu::{ClientCost, nanos},
        digest::Digest,
        histogram::{ExactBelow, Summary, encode},
        meter::{KindMeter, Meter, StepMeter},
        seconds::Seconds,
        statements::{Groups, StatementResult},
        times::{COLUMNS, Times, edges_ns},
    },
    schedule::{
        ramps::Profile,
        timeline::{Timeline, Window},
    },
    shared::Shared,
};

/// Since 2 times are those of all requests that somebody waited for within the window; before, they
/// were of those that ended there. Since 3 the name of a kind is its `kind`.
const VERSION: u32 = 3;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunOutcome {
    /// As planned.
    Complete,
    /// As planned, but requests of the window had no answer when the drain ended.
    Unanswered,
    /// Somebody asked for an early end.
    Stopped,
    /// No server could be reached any more.
    GaveUp,
}

/// One kind of transaction.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct KindResult {
    /// Its name.
    #[serde(rename = "kind")]
    pub name: String,
    /// Outcomes in the window.
    pub window: Counts,
    /// Outcomes of the whole run.
    pub run: Counts,
    /// Histogram of response times, base64 of V2 deflate, ns: of all requests that somebody waited
    /// for within the window; those without an answer with the time until the drain ended.
    pub response: String,
    /// Histogram of service times, likewise, of those that a connection took up.
    pub service: String,
    /// Response times at a glance.
    pub response_ns: Summary,
    /// Histogram of times from the due time until a connection took it up, likewise.
    pub queue: String,
    /// Service times at a glance.
    pub service_ns: Summary,
    /// Times until a connection took it up, at a glance.
    pub queue_ns: Summary,
    /// Mean keying time, of those that were answered.
    pub keying_mean_s: f64,
    /// Mean think time that followed the same.
    pub think_mean_s: f64,
    /// Times of statements, of all requests with a response time, last attempts only.
    pub statements: Vec<StatementResult>,
}

/// One kind of transaction in one step.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct StepKindResult {
    /// Its name.
    #[serde(rename = "kind")]
    pub name: String,
    /// Of those that became due in the step: their outcomes in the window.
    pub counts: Counts,
    /// Histogram of their response times, base64 of V2 deflate, ns, as of the whole window.
    pub response: String,
    /// Response times at a glance.
    pub response_ns: Summary,
}

/// One step of the window, as far as it was measured.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct StepResult {
    /// Its begin and end.
    pub unix_ns: [u64; 2],
    /// Its length.
    pub seconds: f64,
    /// Factor at its begin and end.
    pub factor: [f64; 2],
    /// Transactions that came to their end while it lasted, whenever they had become due.
    pub ended: u64,
    /// By kind of transaction.
    pub kinds: Vec<StepKindResult>,
}

/// One of several databases or schemas driven at once.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct PartResult {
    /// Its name.
    pub name: String,
    /// By kind of transaction.
    pub kinds: Vec<KindResult>,
}

/// What was asked for, in one number: equal where two runs performed the same requests.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct DigestResult {
    /// Requests in it: all that ended, of the whole run.
    pub requests: u64,
    /// Sum of their hashes, hexadecimal.
    pub sum: String,
}

/// Counts per second from `start_unix_ns`; the last second may be cut short.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct SecondsResult {
    /// Begin of the first second: that of the warm-up.
    pub start_unix_ns: u64,
    /// Factor of the rate or of the active terminals, mean of each second; 1 without steps.
    pub factor: Vec<f64>,
    /// Became due.
    pub due: Vec<u64>,
    /// Left out by the schedule, whose queue was full.
    pub skipped: Vec<u64>,
    /// Committed, by kind.
    pub committed: BTreeMap<String, Vec<u64>>,
    /// Rolled back on purpose.
    pub rolled_back: Vec<u64>,
    /// Failed.
    pub failed: Vec<u64>,
    /// Repeated.
    pub retries: Vec<u64>,
    /// Response times of those that were committed or rolled back.
    pub times: TimesResult,
}

/// Requests by how long they took, of all kinds together, by the second in which they ended.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct TimesResult {
    /// Seconds that each row holds: 1; beyond two hours 2, 4, 8 …, and none is lost.
    pub step_s: u64,
    /// Bounds of the columns: each holds what is not below one, and below the next.
    pub edges_ns: Vec<u64>,
    /// By column, then by row; a column without requests is empty.
    pub counts: Vec<Vec<u64>>,
}

/// Failures of one class.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct ErrorResult {
    /// The SQLSTATE, or `connection lost`, `protocol`, `answer`.
    pub sqlstate: String,
    /// How many requests.
    pub count: u64,
    /// Text of one.
    pub example: String,
}

/// What a run measured.
#[derive(Debug, Deserialize, Serialize, JsonSchema)]
pub struct RunResult {
    /// Of this format.
    pub version: u32,
    /// How the run ended.
    pub outcome: RunOutcome,
    /// Why it was given up.
    pub error: Option<String>,
    /// Begin of the warm-up.
    pub started_unix_ns: u64,
    /// The same instant by the steady clock of this host.
    pub started_steady_ns: u64,
    /// How much later than that the threads were told.
    pub begun_late_ns: u64,
    /// Start and end of the window.
    pub window_unix_ns: [u64; 2],
    /// Its length; shorter than planned if the run was stopped.
    pub window_s: f64,
    /// From the window's end to the last end of a request that was carried out of it; 0: none was.
    pub drained_s: f64,
    /// From the window's end until requests without an answer were given up; none: all had one.
    pub given_up_s: Option<f64>,
    /// By kind of transaction.
    pub kinds: Vec<KindResult>,
    /// By part, where the specification has any.
    pub parts: Vec<PartResult>,
    /// By step, where the specification has any.
    pub steps: Vec<StepResult>,
    /// Histogram of times from the due time until the schedule noticed it, of requests that it
    /// waited for, in the window.
    pub late: String,
    /// These times at a glance.
    pub late_ns: Summary,
    /// What was asked for.
    pub stream_digest: DigestResult,
    /// Over time.
    pub seconds: SecondsResult,
    /// Of the whole run.
    pub errors: Vec<ErrorResult>,
    /// Lost connections that were replaced.
    pub reconnects: u64,
    /// When connections were gone, in warm-up and window.
    pub gaps: Vec<GapResult>,
    /// Cost of the driver in the window.
    pub client: ClientCost,
    /// Inputs of the window against their bands.
    pub audit: Vec<AuditLine>,
    /// What these lines were made from, in the workload's own form; only where other hosts drive a
    /// part of the load, so that theirs can be added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tally: Option<Value>,
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
        timeline: &Timeline,
        shared: &Shared,
        client: ClientCost,
    ) -> Result<Self, RunError> {
        let error = shared.gave_up();
        let outcome = match &error {
            Some(_) => RunOutcome::GaveUp,
            None if shared.is_stopped() => RunOutcome::Stopped,
            None if meter.given_up_ns.is_some() => RunOutcome::Unanswered,
            None => RunOutcome::Complete,
        };
        let names = workload.kinds();
        let window = measured(timeline, shared);
        let ended = meter.kinds.iter().map(|kind| kind.window.succeeded + kind.window.rolled_back);
        let ended: u64 = ended.sum();
        let after_s = |at_ns: u64| nanos(at_ns.saturating_sub(window.until_ns));
        Ok(Self {
            version: VERSION,
            outcome,
            error,
            started_unix_ns: timeline.start_unix_ns,
            started_steady_ns: timeline.start_ns,
            begun_late_ns: 0,
            window_unix_ns: [timeline.unix_ns(window.from_ns), timeline.unix_ns(window.until_ns)],
            window_s: nanos(window.until_ns - window.from_ns),
            drained_s: meter.last_end_ns.map_or(0.0, after_s),
            given_up_s: meter.given_up_ns.map(after_s),
            kinds: KindResult::all(workload, meter)?,
            parts: Vec::new(),
            steps: StepResult::all(names, meter, timeline, window)?,
            late: encode(&meter.late)?,
            late_ns: Summary::of(&meter.late, ExactBelow::default()),
            stream_digest: DigestResult::new(meter.digest),
            seconds: SecondsResult::new(names, meter, timeline, window),
            errors: errors(meter),
            reconnects: shared.reconnects(),
            gaps: shared.gaps(timeline),
            client,
            audit: workload.audit_lines(&meter.audit),
            tally: None,
            statements_per_transaction: ratio(meter.work.executions, ended),
            round_trips_per_transaction: ratio(meter.work.exchanges, ended),
        })
    }
}

/// The window as it was; of no length when the run was stopped before its begin.
fn measured(timeline: &Timeline, shared: &Shared) -> Window {
    let from_ns = shared.from_ns().min(shared.until_ns().max(timeline.start_ns));
    Window { from_ns, until_ns: shared.until_ns().max(from_ns) }
}

fn errors<A>(meter: &Meter<A>) -> Vec<ErrorResult> {
    let result = |(class, failures): (&String, &crate::measure::meter::Failures)| ErrorResult {
        sqlstate: class.clone(),
        count: failures.count,
        example: failures.example.clone(),
    };
    meter.errors.iter().map(result).collect()
}

impl KindResult {
    fn all<W: Workload>(workload: &W, meter: &Meter<W::Audit>) -> Result<Vec<Self>, RunError> {
        let groups = Groups::new(workload.statements());
        let kinds = workload.kinds().iter().zip(&meter.kinds);
        kinds.map(|(name, kind)| Self::new(name, kind, &groups)).collect()
    }

    fn new(name: &str, meter: &KindMeter, groups: &Groups) -> Result<Self, RunError> {
        let below = meter.exact_below;
        let answered = meter.response.len() - meter.window.unanswered;
        Ok(Self {
            name: name.to_owned(),
            window: meter.window,
            run: meter.run,
            response: encode(&meter.response)?,
            service: encode(&meter.service)?,
            response_ns: Summary::of(&meter.response, below.response),
            queue: encode(&meter.queue)?,
            service_ns: Summary::of(&meter.service, below.service),
            queue_ns: Summary::of(&meter.queue, below.queue),
            keying_mean_s: mean_s(meter.keying_ns, answered),
            think_mean_s: mean_s(meter.think_ns, answered),
            statements: StatementResult::all(&meter.statements, groups)?,
        })
    }
}

impl PartResult {
    /// What one part's workers counted.
    ///
    /// # Errors
    ///
    /// A histogram cannot be written.
    pub fn new<W: Workload>(
        name: &str,
        workload: &W,
        meter: &Meter<W::Audit>,
    ) -> Result<Self, RunError> {
        Ok(Self { name: name.to_owned(), kinds: KindResult::all(workload, meter)? })
    }
}

impl StepResult {
    /// Those that began before the window ended.
    fn all<A>(
        names: &[String],
        meter: &Meter<A>,
        timeline: &Timeline,
        window: Window,
    ) -> Result<Vec<Self>, RunError> {
        let profile = &meter.profile;
        let begun = |step: &usize| profile.step_ns(*step).0 < window.until_ns;
        let steps = (0..profile.steps()).take_while(begun);
        steps.map(|step| Self::new(names, meter, timeline, window, step)).collect()
    }

    fn new<A>(
        names: &[String],
        meter: &Meter<A>,
        timeline: &Timeline,
        window: Window,
        step: usize,
    ) -> Result<Self, RunError> {
        let profile = &meter.profile;
        let (from_ns, until_ns) = profile.step_ns(step);
        let until_ns = until_ns.min(window.until_ns);
        let kinds = names.iter().zip(&meter.steps[step]);
        Ok(Self {
            unix_ns: [timeline.unix_ns(from_ns), timeline.unix_ns(until_ns)],
            seconds: nanos(until_ns - from_ns),
            factor: profile.step_factors(step),
            ended: meter.ended[step],
            kinds: kinds
                .map(|(name, kind)| StepKindResult::new(name, kind))
                .collect::<Result<_, _>>()?,
        })
    }
}

impl StepKindResult {
    fn new(name: &str, meter: &StepMeter) -> Result<Self, RunError> {
        Ok(Self {
            name: name.to_owned(),
            counts: meter.counts,
            response: encode(&meter.response)?,
            response_ns: Summary::of(&meter.response, meter.exact_below),
        })
    }
}

impl DigestResult {
    fn new(digest: Digest) -> Self {
        Self { requests: digest.requests, sum: format!("{:032x}", digest.sum) }
    }
}

impl SecondsResult {
    /// All columns are of one length: to the end of the window, or to the last event after it.
    fn new<A>(names: &[String], meter: &Meter<A>, timeline: &Timeline, window: Window) -> Self {
        const SECOND_NS: u64 = 1_000_000_000;
        let others =
            [&meter.rolled_back, &meter.failed, &meter.retries, &meter.due, &meter.skipped];
        let lasting_ns = window.until_ns.saturating_sub(timeline.start_ns);
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
            start_unix_ns: timeline.start_unix_ns,
            factor: factors(&meter.profile, timeline.start_ns, length),
            due: column(&meter.due),
            skipped: column(&meter.skipped),
            committed: committed.map(|(name, s)| (name.clone(), column(s))).collect(),
            rolled_back: column(&meter.rolled_back),
            failed: column(&meter.failed),
            retries: column(&meter.retries),
            times: TimesResult::new(&meter.times, length),
        }
    }
}

impl TimesResult {
    fn new(times: &Times, seconds: usize) -> Self {
        let step_s = times.step_s();
        let rows = seconds.div_ceil(usize::try_from(step_s).unwrap_or(usize::MAX));
        let column = |number: usize| {
            let mut column = times.column(number);
            if column.iter().all(|&count| count == 0) {
                return Vec::new();
            }
            column.resize(rows, 0);
            column
        };
        Self { step_s, edges_ns: edges_ns(), counts: (0..COLUMNS).map(column).collect() }
    }
}

fn factors(profile: &Profile, start_ns: u64, seconds: usize) -> Vec<f64> {
    let begin_ns = |second: usize| start_ns + second as u64 * 1_000_000_000;
    (0..seconds).map(|second| profile.mean(begin_ns(second), begin_ns(second + 1))).collect()
}

fn mean_s(sum_ns: u128, count: u64) -> f64 {
    let mean_ns = sum_ns.checked_div(count.into()).unwrap_or(0);
    nanos(u64::try_from(mean_ns).unwrap_or(u64::MAX))
}

fn ratio(sum: u64, count: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts of one run stay below 2^52")]
    let (sum, count) = (sum as f64, count as f64);
    if count > 0.0 { sum / count } else { 0.0 }
}
