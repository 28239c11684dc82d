//! Times of the window in which every exchange is made slower on purpose, to see what that does:
//! by CPU time of the driver, or by time that passes before it is sent. No clock.

use std::cell::Cell;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    error::RunError,
    schedule::timeline::{SECONDS_MAX, Timeline, nanoseconds},
};

/// Most of a run.
pub const SLOWDOWNS_MAX: usize = 100_000;
/// Of a pause before an exchange.
const PAUSE_MAX_NS: u64 = 1_000_000_000;

/// A time of the window, and what every exchange that begins in it costs more.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Its begin, in seconds of the window.
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    pub from_s: f64,
    /// Its end.
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    pub until_s: f64,
    /// CPU time that the driver's thread spends.
    #[serde(default)]
    #[schemars(range(max = PAUSE_MAX_NS))]
    pub spin_ns: u64,
    /// Time that passes before it is sent, in which the thread does other things.
    #[serde(default)]
    #[schemars(range(max = PAUSE_MAX_NS))]
    pub delay_ns: u64,
}

/// Refuses slowdowns that do nothing, overlap, or stand in no order.
///
/// # Errors
///
/// The first value that is wrong.
pub fn check(slowdowns: &[Slowdown]) -> Result<(), RunError> {
    if slowdowns.len() > SLOWDOWNS_MAX {
        let fact =
            format!("slowdowns are {}, allowed are at most {SLOWDOWNS_MAX}", slowdowns.len());
        return Err(RunError::spec(fact, None));
    }
    let mut before_s = 0.0;
    for (index, one) in slowdowns.iter().enumerate() {
        if !(before_s <= one.from_s && one.from_s < one.until_s && one.until_s <= SECONDS_MAX) {
            let fact = format!("slowdowns[{index}] lasts from {} to", one.from_s);
            return Err(RunError::spec(
                format!("{fact} {} s, the one before ends at {before_s} s", one.until_s),
                Some("They follow each other, and each ends after it begins."),
            ));
        }
        let longest = one.spin_ns.max(one.delay_ns);
        if longest == 0 || longest > PAUSE_MAX_NS {
            let fact = format!("slowdowns[{index}] has spin_ns {} and", one.spin_ns);
            return Err(RunError::spec(
                format!("{fact} delay_ns {}, allowed are 1 to {PAUSE_MAX_NS}", one.delay_ns),
                Some("One of them may be 0, then the other does it."),
            ));
        }
        before_s = one.until_s;
    }
    Ok(())
}

/// What an exchange costs more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// CPU time.
    pub spin_ns: u64,
    /// Time before it is sent.
    pub delay_ns: u64,
}

/// Those of a run, asked in the order of time.
#[derive(Debug)]
pub struct Slowdowns {
    /// Begin and end, of the steady clock.
    times: Box<[(u64, u64, Pause)]>,
    /// The first that is not over.
    next: Cell<usize>,
}

impl Slowdowns {
    /// Of a run; `None`: there are none.
    #[must_use]
    pub fn new(slowdowns: &[Slowdown], timeline: &Timeline) -> Option<Self> {
        let at = |seconds: f64| timeline.window.from_ns + nanoseconds(seconds);
        let time = |one: &Slowdown| {
            let pause = Pause { spin_ns: one.spin_ns, delay_ns: one.delay_ns };
            (at(one.from_s), at(one.until_s), pause)
        };
        let times: Box<[_]> = slowdowns.iter().map(time).collect();
        (!times.is_empty()).then(|| Self { times, next: Cell::new(0) })
    }

    /// What an exchange costs more that begins now. Time never goes back.
    #[must_use]
    pub fn at(&self, now_ns: u64) -> Pause {
        let mut next = self.next.get();
        while self.times.get(next).is_some_and(|(_, until_ns, _)| *until_ns <= now_ns) {
            next += 1;
        }
        self.next.set(next);
        match self.times.get(next) {
            Some((from_ns, _, pause)) if *from_ns <= now_ns => *pause,
            _ => Pause::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::timeline::Window;

    const TIMELINE: Timeline = Timeline {
        start_ns: 0,
        start_unix_ns: 0,
        window: Window { from_ns: 1_000_000_000, until_ns: 9_000_000_000 },
        drain_ns: 0,
    };

    fn slowdown(from_s: f64, until_s: f64, spin_ns: u64, delay_ns: u64) -> Slowdown {
        Slowdown { from_s, until_s, spin_ns, delay_ns }
    }

    #[test]
    fn they_hold_from_their_begin_to_just_before_their_end() {
        let of = [slowdown(1.0, 2.0, 5, 0), slowdown(2.0, 3.0, 0, 7), slowdown(4.0, 5.0, 1, 1)];
        let slowdowns = Slowdowns::new(&of, &TIMELINE).expect("there are some");
        let pause = |spin_ns, delay_ns| Pause { spin_ns, delay_ns };
        for (at_ns, expected) in [
            (0, pause(0, 0)),
            (1_999_999_999, pause(0, 0)),
            (2_000_000_000, pause(5, 0)),
            (2_999_999_999, pause(5, 0)),
            (3_000_000_000, pause(0, 7)),
            (4_000_000_000, pause(0, 0)),
            (5_500_000_000, pause(1, 1)),
            (6_000_000_000, pause(0, 0)),
            (60_000_000_000, pause(0, 0)),
        ] {
            assert_eq!(slowdowns.at(at_ns), expected, "{at_ns}");
        }
        assert!(Slowdowns::new(&[], &TIMELINE).is_none());
    }

    #[test]
    fn what_overlaps_does_nothing_or_takes_too_long_is_refused() {
        let good = slowdown(1.0, 2.0, 5, 0);
        assert!(check(&[good, slowdown(2.0, 3.0, 0, 1)]).is_ok());
        for (wrong, fact) in [
            (slowdown(1.5, 3.0, 5, 0), "slowdowns[1] lasts from 1.5 to 3 s, the one before ends"),
            (slowdown(3.0, 3.0, 5, 0), "slowdowns[1] lasts from 3 to 3 s"),
            (slowdown(f64::NAN, 3.0, 5, 0), "slowdowns[1] lasts from NaN"),
            (slowdown(2.0, 1e9, 5, 0), "slowdowns[1] lasts from 2 to 1000000000 s"),
            (slowdown(2.0, 3.0, 0, 0), "spin_ns 0 and delay_ns 0, allowed are 1 to"),
            (slowdown(2.0, 3.0, 0, 2_000_000_000), "delay_ns 2000000000, allowed are 1 to"),
        ] {
            let error = check(&[good, wrong]).expect_err("it is wrong");
            assert!(error.fact.contains(fact) && error.hint.is_some(), "{}", error.fact);
        }
    }
}
