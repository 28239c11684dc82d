//! The results of several hosts that drove one load, as the one result of it. Counts, histograms
//! and digests add up exactly, as those of threads do; nothing is averaged that was not a sum.
//! Times are of one calendar: that of who told all hosts when to begin.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use serde_json::Value;
use workload::{Audit, AuditLine, Workload, catalogue};

use super::{
    DigestResult, ErrorResult, KindResult, PartResult, RunOutcome, RunResult, SecondsResult,
    StepKindResult, StepResult, TimesResult, ratio,
};
use crate::{
    connection::outages::GapResult,
    error::RunError,
    measure::{
        cpu::{ClientCost, nanos},
        histogram::{ExactBelow, Summary, decode, encode},
        statements::StatementResult,
        times::joined,
    },
};

/// Merges results that were written as JSON.
///
/// # Errors
///
/// A text is no result, there is none, or they are not of one load that began at one instant.
pub fn merge(workload: &Value, results: &[String]) -> Result<RunResult, RunError> {
    let read = |text: &String| {
        serde_json::from_str(text)
            .map_err(|e| RunError::spec(format!("result of a host cannot be read: {e}"), None))
    };
    let results = results.iter().map(read).collect::<Result<Vec<RunResult>, _>>()?;
    catalogue::with(workload, Merge(results))
        .map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))?
}

struct Merge(Vec<RunResult>);

impl catalogue::Visitor for Merge {
    type Output = Result<RunResult, RunError>;

    fn visit<W: Workload>(self, workload: W) -> Self::Output {
        RunResult::merged(&workload, &self.0)
    }
}

impl RunResult {
    /// Several hosts' results as one.
    ///
    /// # Errors
    ///
    /// There is none, or they are not of one load that began at one instant.
    pub fn merged<W: Workload>(workload: &W, results: &[Self]) -> Result<Self, RunError> {
        let Some(first) = results.first() else {
            return Err(RunError::spec("there are no results to merge".into(), None));
        };
        require_alike(results)?;
        let window_unix_ns = span(results.iter().map(|one| one.window_unix_ns));
        let outcomes = results.iter().map(|one| one.outcome);
        let (executions, exchanges, ended) = work(results);
        Ok(Self {
            version: first.version,
            outcome: outcomes.max_by_key(|outcome| severity(*outcome)).unwrap_or(first.outcome),
            error: results.iter().find_map(|one| one.error.clone()),
            started_unix_ns: first.started_unix_ns,
            started_steady_ns: first.started_steady_ns,
            begun_late_ns: largest(results.iter().map(|one| one.begun_late_ns)),
            window_unix_ns,
            window_s: nanos(window_unix_ns[1] - window_unix_ns[0]),
            drained_s: results.iter().map(|one| one.drained_s).fold(0.0, f64::max),
            given_up_s: results.iter().filter_map(|one| one.given_up_s).reduce(f64::min),
            kinds: by_place(results, |one| &one.kinds, KindResult::merged)?,
            parts: by_place(results, |one| &one.parts, PartResult::merged)?,
            steps: by_place(results, |one| &one.steps, StepResult::merged)?,
            late: encode(&sum(results.iter().map(|one| &one.late))?)?,
            late_ns: summary(results.iter().map(|one| (&one.late, &one.late_ns)))?,
            stream_digest: digest(results)?,
            seconds: seconds(results),
            errors: errors(results),
            reconnects: results.iter().map(|one| one.reconnects).sum(),
            gaps: gaps(results.iter().flat_map(|one| &one.gaps)),
            client: client(results),
            audit: audit(workload, results)?,
            tally: None,
            statements_per_transaction: ratio(executions, ended),
            round_trips_per_transaction: ratio(exchanges, ended),
        })
    }
}

/// Results of one load have the same kinds, parts and begin.
fn require_alike(results: &[RunResult]) -> Result<(), RunError> {
    let names = |one: &RunResult| {
        let kinds = one.kinds.iter().map(|kind| kind.name.clone());
        let parts = one.parts.iter().map(|part| part.name.clone());
        kinds.chain(parts).collect::<Vec<_>>()
    };
    for pair in results.windows(2) {
        let [before, after] = pair else { continue };
        let begins = (before.started_unix_ns, after.started_unix_ns);
        if before.version != after.version || names(before) != names(after) {
            let fact = "results of hosts are of different loads, or of different versions".into();
            return Err(RunError::spec(fact, None));
        }
        if begins.0 != begins.1 {
            let fact = format!("results of hosts begin at {} and {} ns", begins.0, begins.1);
            return Err(RunError::spec(fact, None));
        }
    }
    Ok(())
}

fn severity(outcome: RunOutcome) -> u8 {
    match outcome {
        RunOutcome::Complete => 0,
        RunOutcome::Unanswered => 1,
        RunOutcome::Stopped => 2,
        RunOutcome::GaveUp => 3,
    }
}

fn largest(values: impl Iterator<Item = u64>) -> u64 {
    values.max().unwrap_or(0)
}

/// From the earliest begin to the latest end.
fn span(spans: impl Iterator<Item = [u64; 2]>) -> [u64; 2] {
    let wider = |a: [u64; 2], b: [u64; 2]| [a[0].min(b[0]), a[1].max(b[1])];
    spans.reduce(wider).unwrap_or_default()
}

/// Merges what stands at the same place in each result; some may have measured fewer steps.
fn by_place<T>(
    results: &[RunResult],
    of: impl Fn(&RunResult) -> &Vec<T>,
    merged: impl Fn(&[&T]) -> Result<T, RunError>,
) -> Result<Vec<T>, RunError> {
    let places = results.iter().map(|one| of(one).len()).max().unwrap_or(0);
    let at = |place: usize| {
        let there: Vec<&T> = results.iter().filter_map(|one| of(one).get(place)).collect();
        merged(&there)
    };
    (0..places).map(at).collect()
}

/// Adds histograms of one form, which stays.
fn sum<'a>(texts: impl Iterator<Item = &'a String>) -> Result<Histogram<u64>, RunError> {
    let mut sum: Option<Histogram<u64>> = None;
    for text in texts {
        let one = decode(text)?;
        match &mut sum {
            None => {
                let mut first = one;
                first.auto(true);
                sum = Some(first);
            }
            Some(sum) => sum
                .add(&one)
                .map_err(|e| RunError::spec(format!("histograms cannot be added: {e}"), None))?,
        }
    }
    Ok(sum.unwrap_or_else(crate::measure::histogram::empty))
}

fn summary<'a>(of: impl Iterator<Item = (&'a String, &'a Summary)>) -> Result<Summary, RunError> {
    let mut below = ExactBelow::default();
    let mut texts = Vec::new();
    for (text, summary) in of {
        below.add(summary.exact_below());
        texts.push(text);
    }
    Ok(Summary::of(&sum(texts.into_iter())?, below))
}

impl KindResult {
    fn merged(all: &[&Self]) -> Result<Self, RunError> {
        let first = all[0];
        let texts = |of: fn(&Self) -> &String| all.iter().map(move |one| of(one));
        let mut answered = Vec::new();
        for one in all {
            answered.push(decode(&one.response)?.len().saturating_sub(one.window.unanswered));
        }
        let mean_s = |of: fn(&Self) -> f64| weighted(all.iter().map(|one| of(one)), &answered);
        let mut merged = Self {
            name: first.name.clone(),
            window: first.window,
            run: first.run,
            response: encode(&sum(texts(|one| &one.response))?)?,
            service: encode(&sum(texts(|one| &one.service))?)?,
            response_ns: summary(all.iter().map(|one| (&one.response, &one.response_ns)))?,
            queue: encode(&sum(texts(|one| &one.queue))?)?,
            service_ns: summary(all.iter().map(|one| (&one.service, &one.service_ns)))?,
            queue_ns: summary(all.iter().map(|one| (&one.queue, &one.queue_ns)))?,
            keying_mean_s: mean_s(|one| one.keying_mean_s),
            think_mean_s: mean_s(|one| one.think_mean_s),
            statements: statements(all)?,
        };
        for one in &all[1..] {
            merged.window.merge(&one.window);
            merged.run.merge(&one.run);
        }
        Ok(merged)
    }
}

fn weighted(means: impl Iterator<Item = f64>, counts: &[u64]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "counts of one run stay below 2^52")]
    let real = |count: u64| count as f64;
    let all: u64 = counts.iter().sum();
    let sum: f64 = means.zip(counts).map(|(mean, count)| mean * real(*count)).sum();
    if all > 0 { sum / real(all) } else { 0.0 }
}

/// What carried the same statements counts as one, in the order in which it comes first.
fn statements(all: &[&KindResult]) -> Result<Vec<StatementResult>, RunError> {
    let mut found: Vec<Vec<&StatementResult>> = Vec::new();
    for one in all.iter().flat_map(|kind| &kind.statements) {
        match found.iter_mut().find(|same| same[0].statements == one.statements) {
            Some(same) => same.push(one),
            None => found.push(vec![one]),
        }
    }
    let merged = |same: Vec<&StatementResult>| {
        Ok(StatementResult {
            name: same[0].name.clone(),
            statements: same[0].statements.clone(),
            count: same.iter().map(|one| one.count).sum(),
            histogram: encode(&sum(same.iter().map(|one| &one.histogram))?)?,
            ns: summary(same.iter().map(|one| (&one.histogram, &one.ns)))?,
        })
    };
    found.into_iter().map(merged).collect()
}

impl PartResult {
    fn merged(all: &[&Self]) -> Result<Self, RunError> {
        let kinds = (0..all[0].kinds.len()).map(|kind| {
            KindResult::merged(&all.iter().map(|part| &part.kinds[kind]).collect::<Vec<_>>())
        });
        Ok(Self { name: all[0].name.clone(), kinds: kinds.collect::<Result<_, _>>()? })
    }
}

impl StepResult {
    fn merged(all: &[&Self]) -> Result<Self, RunError> {
        let kinds = (0..all[0].kinds.len()).map(|kind| {
            StepKindResult::merged(&all.iter().map(|step| &step.kinds[kind]).collect::<Vec<_>>())
        });
        Ok(Self {
            unix_ns: span(all.iter().map(|one| one.unix_ns)),
            seconds: all.iter().map(|one| one.seconds).fold(0.0, f64::max),
            factor: all[0].factor,
            ended: all.iter().map(|one| one.ended).sum(),
            kinds: kinds.collect::<Result<_, _>>()?,
        })
    }
}

impl StepKindResult {
    fn merged(all: &[&Self]) -> Result<Self, RunError> {
        let mut counts = all[0].counts;
        for one in &all[1..] {
            counts.merge(&one.counts);
        }
        Ok(Self {
            name: all[0].name.clone(),
            counts,
            response: encode(&sum(all.iter().map(|one| &one.response))?)?,
            response_ns: summary(all.iter().map(|one| (&one.response, &one.response_ns)))?,
        })
    }
}

fn digest(results: &[RunResult]) -> Result<DigestResult, RunError> {
    let mut sum = 0_u128;
    for one in results {
        let text = &one.stream_digest.sum;
        let own = u128::from_str_radix(text, 16)
            .map_err(|e| RunError::spec(format!("digest {text:?} cannot be read: {e}"), None))?;
        sum = sum.wrapping_add(own);
    }
    let requests = results.iter().map(|one| one.stream_digest.requests).sum();
    Ok(DigestResult { requests, sum: format!("{sum:032x}") })
}

fn seconds(results: &[RunResult]) -> SecondsResult {
    let all = || results.iter().map(|one| &one.seconds);
    let columns = |of: fn(&SecondsResult) -> &Vec<u64>| added(all().map(of));
    let mut committed: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let names = all().flat_map(|one| one.committed.keys());
    for name in names {
        if !committed.contains_key(name) {
            let column = added(all().filter_map(|one| one.committed.get(name)));
            committed.insert(name.clone(), column);
        }
    }
    let factor = all().map(|one| &one.factor).max_by_key(|factor| factor.len());
    let mut merged = SecondsResult {
        start_unix_ns: all().map(|one| one.start_unix_ns).min().unwrap_or(0),
        factor: factor.cloned().unwrap_or_default(),
        due: columns(|one| &one.due),
        skipped: columns(|one| &one.skipped),
        committed,
        rolled_back: columns(|one| &one.rolled_back),
        failed: columns(|one| &one.failed),
        retries: columns(|one| &one.retries),
        times: times(&all().map(|one| &one.times).collect::<Vec<_>>()),
    };
    let length = merged.due.len();
    let rows = length.div_ceil(usize::try_from(merged.times.step_s).unwrap_or(usize::MAX));
    let met = merged.times.counts.iter_mut().filter(|column| !column.is_empty());
    met.for_each(|column| column.resize(rows, 0));
    merged.committed.values_mut().for_each(|column| column.resize(length, 0));
    merged
}

/// Those of one build have the same columns; who ran longer than others may have joined more.
fn times(all: &[&TimesResult]) -> TimesResult {
    let step_s = largest(all.iter().map(|one| one.step_s));
    let column = |number: usize| {
        let alike = all.iter().filter_map(|one| {
            let column = one.counts.get(number)?;
            Some(joined(column, (step_s / one.step_s.max(1)).max(1).ilog2()))
        });
        added(alike.collect::<Vec<_>>().iter())
    };
    let columns = all.iter().map(|one| one.counts.len()).max().unwrap_or(0);
    let edges_ns = all.first().map(|one| one.edges_ns.clone()).unwrap_or_default();
    TimesResult { step_s, edges_ns, counts: (0..columns).map(column).collect() }
}

fn added<'a>(columns: impl Iterator<Item = &'a Vec<u64>>) -> Vec<u64> {
    let mut sum: Vec<u64> = Vec::new();
    for column in columns {
        sum.resize(sum.len().max(column.len()), 0);
        sum.iter_mut().zip(column).for_each(|(sum, more)| *sum += more);
    }
    sum
}

fn errors(results: &[RunResult]) -> Vec<ErrorResult> {
    let mut found: BTreeMap<&str, ErrorResult> = BTreeMap::new();
    for one in results.iter().flat_map(|result| &result.errors) {
        let known = found.entry(&one.sqlstate).or_insert_with(|| ErrorResult {
            sqlstate: one.sqlstate.clone(),
            count: 0,
            example: one.example.clone(),
        });
        known.count += one.count;
    }
    found.into_values().collect()
}

/// Times in which the same number of connections of all hosts was gone.
fn gaps<'a>(all: impl Iterator<Item = &'a GapResult>) -> Vec<GapResult> {
    let mut changes: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for gap in all {
        changes.entry(gap.start_unix_ns).or_default().0 += gap.connections;
        if let Some(end) = gap.end_unix_ns {
            changes.entry(end).or_default().1 += gap.connections;
        }
    }
    let mut gone = 0;
    let mut found: Vec<GapResult> = Vec::new();
    for (at_ns, (lost, replaced)) in changes {
        if let Some(open) = found.last_mut().filter(|gap| gap.end_unix_ns.is_none()) {
            open.end_unix_ns = Some(at_ns);
        }
        gone = gone + lost - replaced;
        if gone > 0 {
            found.push(GapResult { start_unix_ns: at_ns, end_unix_ns: None, connections: gone });
        }
    }
    found
}

/// What all hosts together spent. Whether one of them was the limit only its own account tells.
fn client(results: &[RunResult]) -> ClientCost {
    let costs = || results.iter().map(|one| &one.client);
    let every = |of: fn(&ClientCost) -> &Vec<f64>| costs().flat_map(of).copied().collect();
    let window_s = costs().map(|one| one.window_s).fold(0.0, f64::max);
    let cpus: usize = costs().map(|one| one.cpus).sum();
    let user_s: f64 = costs().map(|one| one.user_s).sum();
    let system_s: f64 = costs().map(|one| one.system_s).sum();
    #[expect(clippy::cast_precision_loss, reason = "machines have fewer than 2^52 CPUs")]
    let capacity_s = window_s * cpus as f64;
    ClientCost {
        user_s,
        system_s,
        window_s,
        cpus,
        share_of_host: if capacity_s > 0.0 { (user_s + system_s) / capacity_s } else { 0.0 },
        voluntary_switches: costs().map(|one| one.voluntary_switches).sum(),
        involuntary_switches: costs().map(|one| one.involuntary_switches).sum(),
        run_queue_wait_s: costs().map(|one| one.run_queue_wait_s).sum(),
        thread_cpu_s: every(|one| &one.thread_cpu_s),
        thread_wait_s: every(|one| &one.thread_wait_s),
        threads: costs().map(|one| one.threads).sum(),
        rss_max_bytes: costs().map(|one| one.rss_max_bytes).sum(),
    }
}

/// From the hosts' counts, not from their lines: bands and chi-squares are of all requests.
fn audit<W: Workload>(workload: &W, results: &[RunResult]) -> Result<Vec<AuditLine>, RunError> {
    let mut all = W::Audit::default();
    for one in results {
        let tally = one.tally.clone().ok_or_else(|| {
            RunError::spec("result of a host has no tally, so it had the whole load".into(), None)
        })?;
        let own: W::Audit = serde_json::from_value(tally)
            .map_err(|e| RunError::spec(format!("tally of a host cannot be read: {e}"), None))?;
        all.merge(&own);
    }
    Ok(workload.audit_lines(&all))
}

/// Statements, round trips, and the transactions that they are of; each was a whole number.
fn work(results: &[RunResult]) -> (u64, u64, u64) {
    let mut sums = (0, 0, 0);
    for one in results {
        let counts = one.kinds.iter().map(|kind| kind.window);
        let ended: u64 = counts.map(|window| window.succeeded + window.rolled_back).sum();
        sums.0 += whole(one.statements_per_transaction, ended);
        sums.1 += whole(one.round_trips_per_transaction, ended);
        sums.2 += ended;
    }
    sums
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts of one run stay below 2^52, and are not negative"
)]
fn whole(ratio: f64, count: u64) -> u64 {
    (ratio * count as f64).round() as u64
}

#[cfg(test)]
mod tests;
