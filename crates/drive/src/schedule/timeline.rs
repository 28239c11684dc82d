//! When the phases of a run begin, and its window. No clock.

/// A week; longer is a mistake in the unit.
pub(crate) const SECONDS_MAX: f64 = 604_800.0;

const NS: f64 = 1e9;

/// Nanoseconds of a span that is never negative; beyond the end of time: its end.
#[must_use]
pub fn nanoseconds(seconds: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a span is never negative, and the conversion saturates"
    )]
    let ns = (seconds * NS).round() as u64;
    ns
}

/// The measured part of a run: from `from_ns` to just before `until_ns`, of the steady clock. Empty
/// when the run was stopped before it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Its first nanosecond.
    pub from_ns: u64,
    /// The first nanosecond after it; no request becomes due from then on.
    pub until_ns: u64,
}

impl Window {
    /// Whether it lasts at all.
    #[must_use]
    pub fn exists(self) -> bool {
        self.from_ns < self.until_ns
    }

    /// Whether an instant lies in it.
    #[must_use]
    pub fn holds(self, at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&at_ns)
    }
}

/// When the phases of a run begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// Begin of the warm-up.
    pub start_ns: u64,
    /// The same instant by the calendar.
    pub start_unix_ns: u64,
    /// The measured part.
    pub window: Window,
    /// How long requests in flight may take after the window.
    pub drain_ns: u64,
}

impl Timeline {
    /// An instant of the steady clock by the calendar.
    #[must_use]
    pub fn unix_ns(&self, at_ns: u64) -> u64 {
        self.start_unix_ns + at_ns.saturating_sub(self.start_ns)
    }
}
