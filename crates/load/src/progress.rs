//! How far a load is, shared between its threads and whoever asks.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;

use drive::{clock::steady_ns, measure::cpu::nanos};

/// Parts of a load. From `Copy` to `Finish` they overlap: relations do not wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Look at the database, create the tables.
    Prepare,
    /// Rows.
    Copy,
    /// Primary keys and secondary indexes.
    Index,
    /// Freeze, visibility maps, statistics of the planner.
    Vacuum,
    /// Foreign keys, if asked for.
    ForeignKeys,
    /// What a schema wants to be done at the end.
    Finish,
    /// What was loaded, into the database itself.
    Record,
    /// There is a result, or an error.
    Done,
}

impl Phase {
    /// As in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Copy => "copy",
            Self::Index => "index",
            Self::Vacuum => "vacuum",
            Self::ForeignKeys => "foreign_keys",
            Self::Finish => "finish",
            Self::Record => "record",
            Self::Done => "done",
        }
    }
}

/// How far a load is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadProgress {
    /// The first part that is not done.
    pub phase: Phase,
    /// Rows sent.
    pub rows: u64,
    /// Rows to send; of a load that goes on, about.
    pub rows_total: u64,
    /// Bytes of COPY data sent.
    pub bytes: u64,
    /// In the copy phase so far; 0 before it.
    pub bytes_per_s: f64,
    /// Since the start.
    pub seconds: f64,
    /// Share of the work that is done, from 0 to 1: building an index or vacuuming counts as a
    /// part of copying the rows.
    pub share: f64,
    /// Estimated from the work done so far; absent until some is.
    pub seconds_left: Option<f64>,
    /// What the connections do at this moment.
    pub steps: Vec<String>,
    /// All the work, that `share` is of, in the time of copying a byte of table and index.
    pub work: u64,
}

/// Work that is ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Work {
    /// Rows to send.
    pub(super) rows: u64,
    /// Everything, in units of the steps' costs.
    pub(super) units: u64,
}

/// Whether the load goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoadState {
    /// Yes.
    Running,
    /// No: somebody asked for the end.
    Stopped,
    /// No: a part of it failed.
    Failed,
}

/// What was sent of one table.
#[derive(Debug, Default)]
struct Sent {
    rows: AtomicU64,
    bytes: AtomicU64,
}

/// The shared account.
#[derive(Debug)]
pub(super) struct Shared {
    begun_ns: u64,
    copy_ns: [AtomicU64; 2],
    work: Mutex<Work>,
    phase: Mutex<Phase>,
    sent: Vec<Sent>,
    units: AtomicU64,
    steps: Mutex<Vec<Option<String>>>,
    state: watch::Sender<LoadState>,
}

impl Shared {
    /// Of a load of so many tables.
    pub(super) fn new(tables: usize) -> Self {
        Self {
            begun_ns: steady_ns(),
            copy_ns: [AtomicU64::new(0), AtomicU64::new(0)],
            work: Mutex::new(Work::default()),
            phase: Mutex::new(Phase::Prepare),
            sent: (0..tables).map(|_| Sent::default()).collect(),
            units: AtomicU64::new(0),
            steps: Mutex::new(Vec::new()),
            state: watch::Sender::new(LoadState::Running),
        }
    }

    /// What is ahead is known now.
    pub(super) fn expect(&self, work: Work) {
        *self.work.lock().unwrap_or_else(PoisonError::into_inner) = work;
    }

    /// Goes on to a phase.
    pub(super) fn enter(&self, phase: Phase) {
        let mut now = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        if *now == phase {
            return;
        }
        if phase == Phase::Copy {
            self.copy_ns[0].store(steady_ns(), Relaxed);
        }
        if *now == Phase::Copy {
            self.copy_ns[1].store(steady_ns(), Relaxed);
        }
        *now = phase;
    }

    pub(super) fn finish(&self) {
        self.enter(Phase::Done);
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows of a table were sent.
    pub(super) fn sent(&self, table: usize, rows: u64, bytes: u64, units: u64) {
        let sent = &self.sent[table];
        sent.rows.fetch_add(rows, Relaxed);
        sent.bytes.fetch_add(bytes, Relaxed);
        self.worked(units);
    }

    /// Work was done.
    pub(super) fn worked(&self, units: u64) {
        self.units.fetch_add(units, Relaxed);
    }

    /// What a connection does now.
    pub(super) fn step(&self, slot: usize, step: Option<String>) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.len() <= slot {
            steps.resize(slot + 1, None);
        }
        steps[slot] = step;
    }

    pub(super) fn stop(&self) {
        self.end(LoadState::Stopped);
    }

    pub(super) fn fail(&self) {
        self.end(LoadState::Failed);
    }

    fn end(&self, how: LoadState) {
        self.state.send_if_modified(|state| {
            let running = *state == LoadState::Running;
            if running {
                *state = how;
            }
            running
        });
    }

    pub(super) fn state(&self) -> LoadState {
        *self.state.borrow()
    }

    /// Waits until the load does not go on. What comes after holds no look at the state: whoever
    /// ends it a second time waits for all looks to be over, and all later looks wait for him.
    pub(super) async fn ended(&self) {
        let mut state = self.state.subscribe();
        // The sender is ours, and so never gone.
        let _look = state.wait_for(|state| *state != LoadState::Running).await;
    }

    pub(super) fn rows(&self) -> u64 {
        self.sent.iter().map(|sent| sent.rows.load(Relaxed)).sum()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.sent.iter().map(|sent| sent.bytes.load(Relaxed)).sum()
    }

    /// Rows and bytes sent of a table.
    pub(super) fn of_table(&self, table: usize) -> (u64, u64) {
        let sent = &self.sent[table];
        (sent.rows.load(Relaxed), sent.bytes.load(Relaxed))
    }

    pub(super) fn seconds(&self) -> f64 {
        nanos(steady_ns() - self.begun_ns)
    }

    pub(super) fn read(&self) -> LoadProgress {
        let phase = self.phase();
        let work = *self.work.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let [from, until] = [0, 1].map(|end| self.copy_ns[end].load(Relaxed));
        let until = if phase == Phase::Copy { steady_ns() } else { until };
        let copy_s = nanos(until.saturating_sub(from));
        let bytes = self.bytes();
        let share = if phase == Phase::Done {
            1.0
        } else {
            (real(self.units.load(Relaxed)) / real(work.units.max(1))).min(1.0)
        };
        let seconds = self.seconds();
        // The first percent is the start of sessions, from which nothing follows.
        let known = phase != Phase::Done && share > 0.01;
        LoadProgress {
            phase,
            rows: self.rows(),
            rows_total: work.rows,
            bytes,
            bytes_per_s: if copy_s > 0.0 { real(bytes) / copy_s } else { 0.0 },
            seconds,
            share,
            seconds_left: known.then(|| seconds * (1.0 - share) / share),
            steps: steps.iter().flatten().cloned().collect(),
            work: work.units,
        }
    }
}

/// A count as a real number.
pub(super) fn real(count: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
    let real = count as f64;
    real
}
