//! The book of what became due: kept by the queue, apart from the meter's counts of endings, so
//! that two independent sums can be compared at the end.

use hdrhistogram::Histogram;

use crate::{
    measure::{histogram, seconds::Seconds},
    schedule::{
        ramps::Profile,
        timeline::{Timeline, Window},
    },
};

const SECOND_NS: u64 = 1_000_000_000;

/// Requests of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Became due since the start of the warm-up.
    pub run: u64,
    /// Became due within the window.
    pub window: u64,
    /// The part of `run` that found the queue full.
    pub skipped_run: u64,
    /// The part of `window` that found the queue full.
    pub skipped_window: u64,
}

/// Where a due time lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Within the window.
    pub in_window: bool,
    /// Within this step of the window.
    pub step: Option<u8>,
}

/// The book of one thread's queue.
#[derive(Debug)]
pub struct DueBook {
    start_ns: u64,
    /// By kind.
    pub kinds: Vec<Due>,
    /// By step, then by kind: became due, and the skipped part of it.
    pub steps: Vec<Vec<(u64, u64)>>,
    /// Became due.
    pub due: Seconds,
    /// Found the queue full.
    pub skipped: Seconds,
    /// From the due time until the schedule noticed it, of requests that it waited for and that
    /// became due within the window.
    pub late: Histogram<u64>,
}

impl DueBook {
    /// An empty book.
    #[must_use]
    pub fn new(kinds: usize, steps: usize, timeline: &Timeline) -> Self {
        Self {
            start_ns: timeline.start_ns,
            kinds: vec![Due::default(); kinds],
            steps: vec![vec![(0, 0); kinds]; steps],
            due: Seconds::default(),
            skipped: Seconds::default(),
            late: histogram::empty(),
        }
    }

    /// Where a due time lies.
    #[must_use]
    pub fn place(due_ns: u64, window: Window, profile: &Profile) -> Place {
        let in_window = window.holds(due_ns);
        let step = if in_window && !profile.is_level() { profile.step(due_ns) } else { None };
        Place { in_window, step: step.and_then(|step| u8::try_from(step).ok()) }
    }

    /// Counts a request that became due.
    pub fn add(&mut self, kind: usize, due_ns: u64, place: Place, is_skipped: bool) {
        let skipped = u64::from(is_skipped);
        let book = &mut self.kinds[kind];
        book.run += 1;
        book.skipped_run += skipped;
        if place.in_window {
            book.window += 1;
            book.skipped_window += skipped;
        }
        if let Some(step) = place.step {
            let (due, left_out) = &mut self.steps[usize::from(step)][kind];
            *due += 1;
            *left_out += skipped;
        }
        let running_ns = due_ns.saturating_sub(self.start_ns);
        let second = usize::try_from(running_ns / SECOND_NS).unwrap_or(usize::MAX);
        self.due.add(second, 1);
        if is_skipped {
            self.skipped.add(second, 1);
        }
    }

    /// Notes how late the schedule noticed a due time.
    pub fn noticed(&mut self, due_ns: u64, now_ns: u64, window: Window) {
        if window.holds(due_ns) {
            histogram::record(&mut self.late, now_ns.saturating_sub(due_ns));
        }
    }
}
