//! How far a load is, shared between its threads and whoever asks.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use serde::Serialize;
use tokio::sync::watch;
use workload::tpcc::rows::Target;

use crate::{clock::steady_ns, cpu::nanos};

/// Parts of a load, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Look at the database, create the tables.
    Prepare,
    /// Rows.
    Copy,
    /// Primary keys and secondary indexes.
    Index,
    /// Foreign keys, if asked for.
    ForeignKeys,
    /// Freeze, visibility maps, statistics of the planner.
    Vacuum,
    /// What was loaded, into the database itself.
    Record,
    /// There is a result, or an error.
    Done,
}

/// How far a load is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadProgress {
    /// What is being done.
    pub phase: Phase,
    /// Rows sent.
    pub rows: u64,
    /// Rows to send.
    pub rows_total: u64,
    /// Bytes of COPY data sent.
    pub bytes: u64,
    /// In the copy phase so far; 0 before it.
    pub bytes_per_s: f64,
    /// Since the start.
    pub seconds: f64,
    /// Estimated from the work done so far; absent until some is.
    pub seconds_left: Option<f64>,
    /// What the connections do at this moment.
    pub steps: Vec<String>,
}

/// Work of a whole load, in rows: building an index or vacuuming costs a part of copying the rows.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Work {
    /// Rows to send.
    pub(super) rows: u64,
    /// Everything, in rows.
    pub(super) units: u64,
}

/// Whether the load goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Course {
    /// Yes.
    On,
    /// No: somebody asked for the end.
    Stopped,
    /// No: a part of it failed.
    Failed,
}

/// The shared account.
#[derive(Debug)]
pub(super) struct Shared {
    begun_ns: u64,
    copy_ns: [AtomicU64; 2],
    work: Work,
    phase: Mutex<Phase>,
    rows: AtomicU64,
    bytes: [AtomicU64; Target::ALL.len()],
    units: AtomicU64,
    steps: Mutex<Vec<Option<String>>>,
    course: watch::Sender<Course>,
}

impl Shared {
    pub(super) fn new(work: &Work) -> Self {
        Self {
            begun_ns: steady_ns(),
            copy_ns: [AtomicU64::new(0), AtomicU64::new(0)],
            work: *work,
            phase: Mutex::new(Phase::Prepare),
            rows: AtomicU64::new(0),
            bytes: std::array::from_fn(|_| AtomicU64::new(0)),
            units: AtomicU64::new(0),
            steps: Mutex::new(Vec::new()),
            course: watch::Sender::new(Course::On),
        }
    }

    /// Goes on to a phase.
    pub(super) fn enter(&self, phase: Phase) {
        if phase == Phase::Copy {
            self.copy_ns[0].store(steady_ns(), Relaxed);
        }
        if self.phase() == Phase::Copy {
            self.copy_ns[1].store(steady_ns(), Relaxed);
        }
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner) = phase;
    }

    pub(super) fn finish(&self) {
        self.enter(Phase::Done);
    }

    pub(super) fn phase(&self) -> Phase {
        *self.phase.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Rows were sent.
    pub(super) fn sent(&self, target: Target, rows: u64, bytes: u64) {
        self.rows.fetch_add(rows, Relaxed);
        self.bytes[target as usize].fetch_add(bytes, Relaxed);
        self.units.fetch_add(rows, Relaxed);
    }

    /// Other work was done.
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
        self.course.send_if_modified(|course| {
            let on = *course == Course::On;
            if on {
                *course = Course::Stopped;
            }
            on
        });
    }

    pub(super) fn fail(&self) {
        self.course.send_if_modified(|course| {
            let on = *course == Course::On;
            if on {
                *course = Course::Failed;
            }
            on
        });
    }

    pub(super) fn course(&self) -> Course {
        *self.course.borrow()
    }

    /// For waiting until the load does not go on.
    pub(super) fn follow(&self) -> watch::Receiver<Course> {
        self.course.subscribe()
    }

    pub(super) fn rows(&self) -> u64 {
        self.rows.load(Relaxed)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.load(Relaxed)).sum()
    }

    pub(super) fn bytes_of(&self, table: &str) -> u64 {
        let target = Target::ALL.iter().find(|target| target.table() == table);
        target.map_or(0, |target| self.bytes[*target as usize].load(Relaxed))
    }

    pub(super) fn seconds(&self) -> f64 {
        nanos(steady_ns() - self.begun_ns)
    }

    pub(super) fn read(&self) -> LoadProgress {
        let phase = self.phase();
        let steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        let [from, until] = [0, 1].map(|end| self.copy_ns[end].load(Relaxed));
        let until = if phase == Phase::Copy { steady_ns() } else { until };
        let copy_s = nanos(until.saturating_sub(from));
        let bytes = self.bytes();
        let done = real(self.units.load(Relaxed)) / real(self.work.units.max(1));
        let seconds = self.seconds();
        // The first percent is the start of sessions, from which nothing follows.
        let known = phase != Phase::Done && done > 0.01;
        LoadProgress {
            phase,
            rows: self.rows(),
            rows_total: self.work.rows,
            bytes,
            bytes_per_s: if copy_s > 0.0 { real(bytes) / copy_s } else { 0.0 },
            seconds,
            seconds_left: known.then(|| seconds * (1.0 - done).max(0.0) / done),
            steps: steps.iter().flatten().cloned().collect(),
        }
    }
}

/// A count as a real number.
pub(super) fn real(count: u64) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
    let real = count as f64;
    real
}
