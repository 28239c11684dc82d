//! What one thread counts and times. Nothing is shared; threads are merged when they have ended.

use std::{collections::BTreeMap, sync::atomic::Ordering::Relaxed};

use hdrhistogram::Histogram;
use wire::Work;
use workload::{Audit, Outcome};

use super::{
    counts::Counts,
    digest::Digest,
    histogram::{self, ExactBelow},
    seconds::Seconds,
    statements::{Laps, StatementTimes},
    times::Times,
};
use crate::connection::retry::{Ending, Retries};
use crate::schedule::timeline::{Timeline, Window};
use crate::schedule::{due::DueBook, queue::Head, ramps::Profile};
use crate::shared::Published;

const SECOND_NS: u64 = 1_000_000_000;
/// Skipped requests are never answered. They have no time, so whatever is shown of the others is a
/// lower bound.
const LONGER_THAN_ALL: u64 = 0;

/// One kind of transaction.
#[derive(Clone, Debug)]
pub struct KindMeter {
    /// Of the window.
    pub window: Counts,
    /// Of the whole run, warm-up and drain included.
    pub run: Counts,
    /// End minus due time, of all requests that somebody waited for within the window: due before
    /// its end, not ended before its begin. Answered in the drain: in full; never answered: as the
    /// time until the end of the drain. Failed and skipped ones have no time.
    pub response: Histogram<u64>,
    /// End minus the time when a connection took it up, of those that one took up.
    pub service: Histogram<u64>,
    /// That time minus the due time; not taken up: as the time until the end of the drain.
    pub queue: Histogram<u64>,
    /// Which of these times are lower bounds.
    pub exact_below: Waits,
    /// The part of the window's `unanswered` that no connection took up.
    pub unsent: u64,
    /// Keying times of the requests that were answered, summed.
    pub keying_ns: u128,
    /// Think times that followed the same, summed.
    pub think_ns: u128,
    /// Times of all the requests' statements.
    pub statements: StatementTimes,
}

/// Where the lower bounds begin in each of a kind's histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waits {
    /// Of response times.
    pub response: ExactBelow,
    /// Of service times.
    pub service: ExactBelow,
    /// Of times until a connection took a request up.
    pub queue: ExactBelow,
}

impl KindMeter {
    fn new() -> Self {
        Self {
            window: Counts::default(),
            run: Counts::default(),
            response: histogram::empty(),
            service: histogram::empty(),
            queue: histogram::empty(),
            exact_below: Waits::default(),
            unsent: 0,
            keying_ns: 0,
            think_ns: 0,
            statements: StatementTimes::default(),
        }
    }

    fn time(&mut self, record: &Record<'_>) {
        let &Record { head, taken_ns, ended_ns, .. } = record;
        histogram::record(&mut self.response, ended_ns - head.due_ns);
        histogram::record(&mut self.service, ended_ns - taken_ns);
        histogram::record(&mut self.queue, taken_ns - head.due_ns);
        self.keying_ns += u128::from(head.keying_ns);
        self.think_ns += u128::from(head.think_ns);
        self.statements.add(record.laps);
    }

    /// Times a request without an answer until now.
    fn time_unanswered(&mut self, request: &Unanswered<'_>, now_ns: u64) {
        let &Unanswered { head, taken, .. } = request;
        let at_least = |histogram: &mut Histogram<u64>, bound: &mut ExactBelow, since_ns: u64| {
            let ns = now_ns.saturating_sub(since_ns);
            histogram::record(histogram, ns);
            bound.bound(ns);
        };
        at_least(&mut self.response, &mut self.exact_below.response, head.due_ns);
        match taken {
            None => at_least(&mut self.queue, &mut self.exact_below.queue, head.due_ns),
            Some(Taken { at_ns, laps }) => {
                at_least(&mut self.service, &mut self.exact_below.service, at_ns);
                histogram::record(&mut self.queue, at_ns - head.due_ns);
                self.statements.add_unanswered(laps, now_ns);
            }
        }
    }

    /// Whether every request that must have a time has one.
    fn assert_timed(&self, name: &str) {
        let Counts { succeeded, rolled_back, drained, unanswered, .. } = self.window;
        let timed = succeeded + rolled_back + drained + unanswered;
        for (histogram, wanted) in
            [(&self.response, timed), (&self.queue, timed), (&self.service, timed - self.unsent)]
        {
            assert_eq!(histogram.len(), wanted, "{name}: every wait in the window is timed");
        }
    }

    fn merge(&mut self, other: &Self) {
        self.window.merge(&other.window);
        self.run.merge(&other.run);
        histogram::add(&mut self.response, &other.response);
        histogram::add(&mut self.service, &other.service);
        histogram::add(&mut self.queue, &other.queue);
        self.exact_below.response.add(other.exact_below.response);
        self.exact_below.service.add(other.exact_below.service);
        self.exact_below.queue.add(other.exact_below.queue);
        self.unsent += other.unsent;
        self.keying_ns += other.keying_ns;
        self.think_ns += other.think_ns;
        self.statements.merge(&other.statements);
    }
}

/// Requests of one kind that became due in one step of the window.
#[derive(Clone, Debug)]
pub struct StepMeter {
    /// Their outcomes in the window.
    pub counts: Counts,
    /// End minus due time, as of the whole window.
    pub response: Histogram<u64>,
    /// Where the lower bounds begin among these.
    pub exact_below: ExactBelow,
}

fn by_step(kinds: usize) -> Vec<StepMeter> {
    (0..kinds).map(|_| StepMeter::new()).collect()
}

impl StepMeter {
    fn new() -> Self {
        let exact_below = ExactBelow::default();
        Self { counts: Counts::default(), response: histogram::empty(), exact_below }
    }

    fn merge(&mut self, other: &Self) {
        self.counts.merge(&other.counts);
        histogram::add(&mut self.response, &other.response);
        self.exact_below.add(other.exact_below);
    }
}

/// Failures of one class.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures {
    /// How many.
    pub count: u64,
    /// The first one's text.
    pub example: String,
}

/// What one request came to.
#[derive(Debug)]
pub struct Record<'a> {
    /// The request's head.
    pub head: &'a Head,
    /// When a connection took it up.
    pub taken_ns: u64,
    /// When it ended.
    pub ended_ns: u64,
    /// How.
    pub ending: &'a Ending,
    /// Statements and round trips of its last attempt.
    pub work: Work,
    /// Times of its last attempt's exchanges.
    pub laps: &'a Laps,
}

/// When a connection took a request up, and what it did since.
#[derive(Clone, Copy, Debug)]
pub struct Taken<'a> {
    /// That instant.
    pub at_ns: u64,
    /// Times of its last attempt's exchanges.
    pub laps: &'a Laps,
}

/// A request without an answer when the books are closed.
#[derive(Clone, Copy, Debug)]
pub struct Unanswered<'a> {
    /// The request's head.
    pub head: &'a Head,
    /// None: it was never taken up.
    pub taken: Option<Taken<'a>>,
}

/// Counters and histograms of one thread, or of several merged.
#[derive(Debug)]
pub struct Meter<A> {
    start_ns: u64,
    /// The steps that it counts by.
    pub profile: Profile,
    /// By kind.
    pub kinds: Vec<KindMeter>,
    /// By step of the window, then by kind.
    pub steps: Vec<Vec<StepMeter>>,
    /// By step: came to their end while it lasted, whenever they had become due.
    pub ended: Vec<u64>,
    /// Became due.
    pub due: Seconds,
    /// Left out by the schedule.
    pub skipped: Seconds,
    /// From the due time until the schedule noticed it, in the window.
    pub late: Histogram<u64>,
    /// Of the requests that ended, of the whole run.
    pub digest: Digest,
    /// Committed, by kind.
    pub committed: Vec<Seconds>,
    /// Rolled back on purpose.
    pub rolled_back: Seconds,
    /// Failed.
    pub failed: Seconds,
    /// End minus due time of those that ended otherwise, in the run, by when they ended.
    pub times: Times,
    /// The last end of a request of the window that was carried out of it.
    pub last_end_ns: Option<u64>,
    /// When requests without an answer were given up; of several threads the first.
    pub given_up_ns: Option<u64>,
    /// Repeated.
    pub retries: Seconds,
    /// By SQLSTATE or class.
    pub errors: BTreeMap<String, Failures>,
    /// Of the requests that came to their end within the window.
    pub audit: A,
    /// Of the same requests.
    pub work: Work,
}

impl<A: Audit> Meter<A> {
    /// Nothing counted yet; room in the series for the whole timeline.
    #[must_use]
    pub fn new(kinds: usize, profile: Profile, timeline: &Timeline) -> Self {
        let due_ns = timeline.window.until_ns.saturating_sub(timeline.start_ns);
        let lasting_ns = due_ns.saturating_add(timeline.drain_ns);
        let seconds = usize::try_from(lasting_ns / SECOND_NS + 2).unwrap_or(0);
        let series = || Seconds(Vec::with_capacity(seconds));
        Self {
            start_ns: timeline.start_ns,
            kinds: (0..kinds).map(|_| KindMeter::new()).collect(),
            steps: (0..profile.steps()).map(|_| by_step(kinds)).collect(),
            ended: vec![0; profile.steps()],
            profile,
            due: Seconds::default(),
            skipped: Seconds::default(),
            late: histogram::empty(),
            digest: Digest::default(),
            committed: (0..kinds).map(|_| series()).collect(),
            rolled_back: series(),
            failed: series(),
            times: Times::for_seconds(seconds),
            last_end_ns: None,
            given_up_ns: None,
            retries: series(),
            errors: BTreeMap::new(),
            audit: A::default(),
            work: Work::default(),
        }
    }

    /// Counts a request that ended. Its outcome belongs to the window if it ended there; if it
    /// ended later, it was carried out of it. Its time belongs to the window in both cases.
    pub fn record(&mut self, record: &Record<'_>, request: &A::Request, window: Window) {
        let &Record { head, ended_ns, ending, work, .. } = record;
        let second = self.second(ended_ns);
        match ending {
            Ending::Done(Outcome::RolledBack) => self.rolled_back.add(second, 1),
            Ending::Done(_) => self.committed[head.kind].add(second, 1),
            Ending::Failed(failure) => {
                self.failed.add(second, 1);
                let known = self.errors.entry(failure.class.clone()).or_default();
                if known.count == 0 {
                    known.example.clone_from(&failure.text);
                }
                known.count += 1;
            }
        }
        if let Ending::Done(_) = ending {
            self.times.add(second, ended_ns - head.due_ns);
        }
        let meter = &mut self.kinds[head.kind];
        meter.run.end(ending);
        let carried_in =
            window.exists() && head.due_ns < window.from_ns && ended_ns >= window.from_ns;
        if !head.place.in_window && !carried_in {
            return;
        }
        meter.window.due += u64::from(!head.place.in_window);
        self.record_step(record, window);
        let meter = &mut self.kinds[head.kind];
        if ended_ns >= window.until_ns {
            self.last_end_ns = self.last_end_ns.max(Some(ended_ns));
            meter.window.unfinished += 1;
            if let Ending::Done(_) = ending {
                meter.window.drained += 1;
                meter.time(record);
            }
            return;
        }
        meter.window.end(ending);
        if let Ending::Done(outcome) = ending {
            meter.time(record);
            if let Some(step) = self.profile.step(ended_ns) {
                self.ended[step] += 1;
            }
            self.work.executions += work.executions;
            self.work.exchanges += work.exchanges;
            self.audit.add(request, *outcome);
        }
    }

    fn record_step(&mut self, record: &Record<'_>, window: Window) {
        let &Record { head, ended_ns, ending, .. } = record;
        let Some(step) = head.place.step else { return };
        let meter = &mut self.steps[usize::from(step)][head.kind];
        let is_done = matches!(ending, Ending::Done(_));
        if ended_ns >= window.until_ns {
            meter.counts.unfinished += 1;
            meter.counts.drained += u64::from(is_done);
        } else {
            meter.counts.end(ending);
        }
        if is_done {
            histogram::record(&mut meter.response, ended_ns - head.due_ns);
        }
    }

    /// Counts repetitions when they happen.
    pub fn retry(&mut self, head: &Head, retries: Retries, now_ns: u64, window: Window) {
        let second = self.second(now_ns);
        self.retries.add(second, retries.serialization + retries.deadlock);
        self.kinds[head.kind].run.retry(retries);
        if window.holds(now_ns) {
            self.kinds[head.kind].window.retry(retries);
            if let Some(step) = head.place.step {
                self.steps[usize::from(step)][head.kind].counts.retry(retries);
            }
        }
    }

    /// At the end: counts a request that was due and has no answer by now.
    pub fn unanswered(&mut self, request: &Unanswered<'_>, window: Window, now_ns: u64) {
        let &Unanswered { head, taken } = request;
        let is_stuck = taken.is_some_and(|taken| taken.at_ns < window.until_ns);
        let meter = &mut self.kinds[head.kind];
        meter.run.give_up(is_stuck);
        let carried_in = window.exists() && head.due_ns < window.from_ns;
        if head.place.in_window || carried_in {
            meter.window.due += u64::from(!head.place.in_window);
            meter.window.give_up(is_stuck);
            meter.unsent += u64::from(taken.is_none());
            meter.time_unanswered(request, now_ns);
            self.given_up_ns = Some(now_ns);
        }
        if let Some(step) = head.place.step {
            let meter = &mut self.steps[usize::from(step)][head.kind];
            let ns = now_ns.saturating_sub(head.due_ns);
            meter.counts.give_up(is_stuck);
            histogram::record(&mut meter.response, ns);
            meter.exact_below.bound(ns);
        }
    }

    /// At the end: adds the queue's own count of what became due. It was kept apart from the counts
    /// of endings, so that [`Meter::assert_conserved`] compares two independent sums.
    pub fn add_due(&mut self, book: &DueBook) {
        for (meter, due) in self.kinds.iter_mut().zip(&book.kinds) {
            meter.run.due += due.run;
            meter.run.skipped += due.skipped_run;
            meter.window.due += due.window;
            meter.window.skipped += due.skipped_window;
            if due.skipped_window > 0 {
                meter.exact_below.response.bound(LONGER_THAN_ALL);
                meter.exact_below.queue.bound(LONGER_THAN_ALL);
            }
        }
        for (meter, &(due, skipped)) in
            self.steps.iter_mut().flatten().zip(book.steps.iter().flatten())
        {
            meter.counts.due += due;
            meter.counts.skipped += skipped;
            if skipped > 0 {
                meter.exact_below.bound(LONGER_THAN_ALL);
            }
        }
        self.due.merge(&book.due);
        self.skipped.merge(&book.skipped);
        histogram::add(&mut self.late, &book.late);
    }

    /// # Panics
    ///
    /// When a request was lost or counted twice.
    pub fn assert_conserved(&self, names: &[String]) {
        let ended = self.kinds.iter().map(|kind| kind.run.succeeded + kind.run.rolled_back);
        assert_eq!(self.times.total(), ended.sum::<u64>(), "every time has its second");
        for (meter, name) in self.kinds.iter().zip(names) {
            meter.run.assert_conserved(name);
            meter.window.assert_conserved(name);
            meter.assert_timed(name);
        }
        for (step, kinds) in self.steps.iter().enumerate() {
            for (meter, name) in kinds.iter().zip(names) {
                meter.counts.assert_conserved(&format!("{name} in step {step}"));
            }
        }
    }

    /// Adds another thread's counts.
    pub fn merge(&mut self, other: &Self) {
        for (mine, other) in self.kinds.iter_mut().zip(&other.kinds) {
            mine.merge(other);
        }
        for (mine, other) in self.steps.iter_mut().flatten().zip(other.steps.iter().flatten()) {
            mine.merge(other);
        }
        for (mine, other) in self.ended.iter_mut().zip(&other.ended) {
            *mine += other;
        }
        self.due.merge(&other.due);
        self.skipped.merge(&other.skipped);
        histogram::add(&mut self.late, &other.late);
        self.digest.merge(&other.digest);
        for (mine, other) in self.committed.iter_mut().zip(&other.committed) {
            mine.merge(other);
        }
        self.rolled_back.merge(&other.rolled_back);
        self.failed.merge(&other.failed);
        self.times.merge(&other.times);
        self.last_end_ns = self.last_end_ns.max(other.last_end_ns);
        let given_up_ns = self.given_up_ns.into_iter().chain(other.given_up_ns);
        self.given_up_ns = given_up_ns.min();
        self.retries.merge(&other.retries);
        for (class, failures) in &other.errors {
            let mine = self
                .errors
                .entry(class.clone())
                .or_insert_with(|| Failures { count: 0, example: failures.example.clone() });
            mine.count += failures.count;
        }
        self.audit.merge(&other.audit);
        self.work.executions += other.work.executions;
        self.work.exchanges += other.work.exchanges;
    }

    /// Tells the other threads, once a second.
    pub fn publish(&self, published: &Published, now_ns: u64) {
        let last = self.second(now_ns).checked_sub(1);
        for (kind, meter) in self.kinds.iter().enumerate() {
            published.committed[kind].store(meter.run.succeeded, Relaxed);
            let count = last.map_or(0, |second| self.committed[kind].at(second));
            published.last_second[kind].store(count, Relaxed);
        }
        let sum = |of: fn(&Counts) -> u64| self.kinds.iter().map(|kind| of(&kind.run)).sum();
        published.rolled_back.store(sum(|counts| counts.rolled_back), Relaxed);
        published.failed.store(sum(|counts| counts.failed), Relaxed);
        published.retries.store(sum(|counts| counts.retries_40001 + counts.retries_40p01), Relaxed);
    }

    fn second(&self, at_ns: u64) -> usize {
        usize::try_from(at_ns.saturating_sub(self.start_ns) / SECOND_NS).unwrap_or(usize::MAX)
    }
}
