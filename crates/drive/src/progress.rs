//! How far a run is, as JSON, asked for about twice a second.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
};

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    measure::cpu::nanos,
    shared::{Published, Shared},
};

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Connections are opened.
    Connect,
    /// All connections stand; when the warm-up begins is to be told.
    Ready,
    /// Nothing counts yet.
    Warmup,
    /// Everything counts.
    Window,
    /// Requests in flight end.
    Drain,
    /// The result is ready.
    Done,
}

/// How far a run is. Counts are those of the last whole second.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Progress {
    /// Which part of the run it is.
    pub phase: Phase,
    /// Since the run was started, connecting included.
    pub elapsed_s: f64,
    /// Until the next phase, as far as the clock decides that.
    pub phase_left_s: f64,
    /// Since the start of the warm-up, by kind.
    pub committed: BTreeMap<String, u64>,
    /// In the last whole second, by kind.
    pub last_second: BTreeMap<String, u64>,
    /// Since the start of the warm-up.
    pub rolled_back: u64,
    /// Likewise.
    pub failed: u64,
    /// Likewise.
    pub retries: u64,
    /// Lost connections that were replaced.
    pub reconnects: u64,
    /// Connections that stand.
    pub connected: usize,
}

impl Progress {
    /// Reads what the threads published. Times are of the steady clock.
    #[must_use]
    pub fn read(shared: &Shared, kinds: &[String], begun_ns: u64, now_ns: u64) -> Self {
        let (phase, next_ns) = phase(shared, now_ns);
        let by_kind = |of: fn(&Published) -> &[AtomicU64]| {
            let sum = |kind: usize| {
                shared.published().iter().map(|thread| of(thread)[kind].load(Relaxed)).sum()
            };
            kinds.iter().enumerate().map(|(kind, name)| (name.clone(), sum(kind))).collect()
        };
        let sum = |of: fn(&Published) -> &AtomicU64| {
            shared.published().iter().map(|thread| of(thread).load(Relaxed)).sum()
        };
        Self {
            phase,
            elapsed_s: nanos(now_ns.saturating_sub(begun_ns)),
            phase_left_s: nanos(next_ns.saturating_sub(now_ns)),
            committed: by_kind(|thread| &thread.committed),
            last_second: by_kind(|thread| &thread.last_second),
            rolled_back: sum(|thread| &thread.rolled_back),
            failed: sum(|thread| &thread.failed),
            retries: sum(|thread| &thread.retries),
            reconnects: shared.reconnects(),
            connected: shared.connections(),
        }
    }
}

/// The phase, and when the next one begins at the latest.
fn phase(shared: &Shared, now_ns: u64) -> (Phase, u64) {
    if shared.is_finished() {
        return (Phase::Done, now_ns);
    }
    let Some(timeline) = *shared.follow().borrow() else {
        let phase = if shared.is_ready() { Phase::Ready } else { Phase::Connect };
        return (phase, now_ns);
    };
    let until_ns = shared.until_ns();
    if now_ns >= until_ns {
        (Phase::Drain, until_ns.saturating_add(timeline.drain_ns))
    } else if now_ns >= shared.from_ns() {
        (Phase::Window, until_ns)
    } else {
        (Phase::Warmup, shared.from_ns().min(until_ns))
    }
}
