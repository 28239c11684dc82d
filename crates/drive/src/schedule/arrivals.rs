//! When requests come: after the answer to the last one (closed loop), or at a rate of their own
//! (open loop). An open loop's arrivals are a function of seed, rate and steps alone: neither the
//! answers nor the number of threads move them. No clock.
//!
//! Arrivals are points on a line at one a unit, evenly or as a Poisson process; the rate and its
//! steps say when the line reaches a point. So a Poisson process stays one on every ramp.

use schemars::JsonSchema;
use serde::Deserialize;
use workload::draw::Draw;

use crate::schedule::ramps::Profile;

/// Streams of draws of arrivals; the workloads use others.
const GAPS: u64 = 201;
const TERMINALS: u64 = 202;

/// Requests a second; no driver sends more.
pub const RATE_MAX: f64 = 1e7;
/// One in 17 minutes.
pub const RATE_MIN: f64 = 0.001;
/// 32 bytes each.
pub const WAITING_MAX: usize = 100_000_000;

/// What makes requests come.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum ArrivalsSpec {
    /// A terminal asks, waits for the answer, thinks, keys, and asks again.
    Closed {},
    /// Requests come at a rate, whatever becomes of those before. Keying and think times are none.
    Open {
        /// Of all terminals together, per second, at factor 1.
        #[schemars(range(min = RATE_MIN, max = RATE_MAX))]
        per_s: f64,
        /// How they are spread.
        #[serde(default)]
        spacing: Spacing,
        /// Requests that may wait for a connection, all threads together; those that become due
        /// beyond are skipped, and counted so.
        #[serde(default = "million")]
        #[schemars(range(min = 1, max = WAITING_MAX))]
        waiting_max: usize,
    },
}

impl Default for ArrivalsSpec {
    fn default() -> Self {
        Self::Closed {}
    }
}

/// How arrivals are spread.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Spacing {
    /// At equal distances, each terminal in its turn.
    #[default]
    Even,
    /// As a Poisson process, each from a terminal drawn at random: as many users who know nothing
    /// of each other.
    Poisson,
}

fn million() -> usize {
    1_000_000
}

/// The terminals of one thread: every `stride`-th from `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminals {
    /// The first one's number.
    pub first: u32,
    /// Threads that terminals are dealt to.
    pub stride: u32,
    /// Terminals of all threads.
    pub all: u32,
}

impl Terminals {
    /// All of them in one thread.
    #[must_use]
    pub fn of_one_thread(all: u32) -> Self {
        Self { first: 0, stride: 1, all }
    }

    /// How many this thread has.
    #[must_use]
    pub fn count(self) -> usize {
        usize::try_from(self.all.saturating_sub(self.first).div_ceil(self.stride)).unwrap_or(0)
    }

    /// Number of the one at a position.
    ///
    /// # Panics
    ///
    /// At a position that this thread does not have.
    #[must_use]
    pub fn id(self, position: u32) -> u32 {
        let id = self.first + position * self.stride;
        assert!(id < self.all, "terminal {id} of {}", self.all);
        id
    }

    /// The first index from `index` on whose terminal is this thread's, where all have their turns
    /// one after the other.
    #[must_use]
    pub fn next_turn(self, index: u64) -> u64 {
        let [all, first, stride] = [self.all, self.first, self.stride].map(u64::from);
        let (round, id) = (index - index % all, index % all);
        let own = first + id.saturating_sub(first).div_ceil(stride) * stride;
        round + if own < all { own } else { all + first }
    }

    /// Position of a number; `None`: another thread's.
    #[must_use]
    pub fn position(self, id: u32) -> Option<u32> {
        (id % self.stride == self.first).then_some(id / self.stride)
    }
}

/// A request to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When.
    pub due_ns: u64,
    /// Position of its terminal.
    pub terminal: u32,
}

/// The arrivals of one thread's terminals, in order.
#[derive(Clone, Debug)]
pub struct Arrivals {
    seed: u64,
    /// Number of the database among those driven at once: each has arrivals of its own.
    part: u64,
    per_s: f64,
    spacing: Spacing,
    terminals: Terminals,
    /// Number of the next arrival of all threads.
    index: u64,
    /// Where on the line the last one lies.
    point: f64,
    upcoming: Option<Arrival>,
}

impl Arrivals {
    /// Arrivals that begin with the run.
    #[must_use]
    pub fn new(seed: u64, part: u64, per_s: f64, spacing: Spacing, terminals: Terminals) -> Self {
        Self { seed, part, per_s, spacing, terminals, index: 0, point: 0.0, upcoming: None }
    }

    /// The next one; `None`: nothing comes any more.
    #[must_use]
    pub fn peek(&self) -> Option<Arrival> {
        self.upcoming
    }

    /// Goes on to the next one; called once before the first.
    pub fn advance(&mut self, profile: &Profile) {
        if self.spacing == Spacing::Even && self.terminals.stride > 1 {
            // Those of others need not be drawn: nothing of this one's follows from them.
            self.index = self.terminals.next_turn(self.index);
        }
        loop {
            let (point, id) = self.next();
            self.index += 1;
            self.point = point;
            if let Some(terminal) = self.terminals.position(id) {
                let due_ns = profile.reaches(point / self.per_s);
                self.upcoming = due_ns.map(|due_ns| Arrival { due_ns, terminal });
                return;
            }
        }
    }

    /// Point and terminal of the next arrival of all threads.
    fn next(&self) -> (f64, u32) {
        let all = u64::from(self.terminals.all);
        let (point, id) = match self.spacing {
            #[expect(clippy::cast_precision_loss, reason = "a run has fewer than 2^52 requests")]
            Spacing::Even => (self.index as f64, self.index % all),
            Spacing::Poisson => {
                let gap = -self.draw(GAPS).share().ln();
                (self.point + gap, self.draw(TERMINALS).below(all))
            }
        };
        // Below `all`, which is a u32.
        (point, u32::try_from(id).unwrap_or(0))
    }

    fn draw(&self, stream: u64) -> Draw {
        Draw::new(self.seed, stream, self.part, self.index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::{
        ramps::Step,
        timeline::{Timeline, Window},
    };

    const SECOND: u64 = 1_000_000_000;

    fn timeline() -> Timeline {
        let window = Window { from_ns: 10 * SECOND, until_ns: 110 * SECOND };
        Timeline { start_ns: 10 * SECOND, start_unix_ns: 0, window, drain_ns: 0 }
    }

    fn all(arrivals: &mut Arrivals, profile: &Profile) -> Vec<Arrival> {
        let mut seen = Vec::new();
        arrivals.advance(profile);
        while let Some(arrival) = arrivals.peek().filter(|a| a.due_ns < 110 * SECOND) {
            seen.push(arrival);
            arrivals.advance(profile);
        }
        seen
    }

    #[test]
    fn even_arrivals_come_at_equal_distances_and_in_turn() {
        let profile = Profile::new(&[], &timeline());
        let terminals = Terminals::of_one_thread(3);
        let seen = all(&mut Arrivals::new(1, 0, 40.0, Spacing::Even, terminals), &profile);
        assert_eq!(seen.len(), 4_000);
        for (index, arrival) in (0..).zip(&seen) {
            assert_eq!(arrival.due_ns, 10 * SECOND + index * 25_000_000);
            assert_eq!(u64::from(arrival.terminal), index % 3);
        }
    }

    #[test]
    fn poisson_arrivals_have_gaps_without_memory_from_the_seed() {
        let profile = Profile::new(&[], &timeline());
        let terminals = Terminals::of_one_thread(50);
        let mut arrivals = Arrivals::new(9, 0, 400.0, Spacing::Poisson, terminals);
        let seen = all(&mut arrivals, &profile);
        // 40,000 +- 200; the bounds are five times that.
        assert!((39_000..41_000).contains(&seen.len()), "{}", seen.len());
        let gaps: Vec<f64> = seen
            .windows(2)
            .map(|pair| crate::measure::cpu::nanos(pair[1].due_ns - pair[0].due_ns) * 400.0)
            .collect();
        for (limit, share) in
            [(0.1, 0.0952), (std::f64::consts::LN_2, 0.5), (2.0, 0.8647), (5.0, 0.9933)]
        {
            let below = gaps.iter().filter(|gap| **gap < limit).count();
            #[expect(clippy::cast_precision_loss, reason = "some ten thousand")]
            let measured = below as f64 / gaps.len() as f64;
            assert!((measured - share).abs() < 0.0125, "{limit}: {measured}");
        }
        let mut of_terminal = [0_u32; 50];
        for arrival in &seen {
            of_terminal[usize::try_from(arrival.terminal).unwrap()] += 1;
        }
        // 800 +- 28 each.
        assert!(of_terminal.iter().all(|count| (660..940).contains(count)), "{of_terminal:?}");
        let other = all(&mut Arrivals::new(8, 0, 400.0, Spacing::Poisson, terminals), &profile);
        let part = all(&mut Arrivals::new(9, 1, 400.0, Spacing::Poisson, terminals), &profile);
        assert!(other[..9] != seen[..9] && part[..9] != seen[..9]);
    }

    #[test]
    fn threads_split_the_same_arrivals() {
        let steps = [Step { seconds: 100.0, from: 0.0, to: 2.0 }];
        let profile = Profile::new(&steps, &timeline());
        for spacing in [Spacing::Even, Spacing::Poisson] {
            let of = |first: u32, stride: u32| {
                let terminals = Terminals { first, stride, all: 7 };
                let mut arrivals = Arrivals::new(3, 0, 20.0, spacing, terminals);
                let seen = all(&mut arrivals, &profile);
                seen.iter().map(|a| (a.due_ns, terminals.id(a.terminal))).collect::<Vec<_>>()
            };
            for stride in [2, 3, 7] {
                let mut split: Vec<_> = (0..stride).flat_map(|at| of(at, stride)).collect();
                split.sort_unstable();
                assert_eq!(split, of(0, 1), "{spacing:?}, {stride}");
            }
        }
    }

    #[test]
    fn the_next_turn_is_the_one_that_a_walk_finds() {
        for all in 1..14 {
            for stride in 1..=all {
                for first in 0..stride {
                    let terminals = Terminals { first, stride, all };
                    for index in 0..u64::from(3 * all) {
                        let own = |at: &u64| {
                            let id = u32::try_from(at % u64::from(all)).expect("small");
                            terminals.position(id).is_some()
                        };
                        let walked =
                            (index..index + u64::from(all)).find(own).expect("each has a terminal");
                        assert_eq!(terminals.next_turn(index), walked, "{terminals:?} {index}");
                    }
                }
            }
        }
    }

    #[test]
    fn ramp_changes_the_rate_as_it_says() {
        let steps = [
            Step { seconds: 50.0, from: 0.0, to: 1.0 },
            Step { seconds: 50.0, from: 2.0, to: 2.0 },
        ];
        let profile = Profile::new(&steps, &timeline());
        let terminals = Terminals::of_one_thread(4);
        let seen = all(&mut Arrivals::new(1, 0, 100.0, Spacing::Even, terminals), &profile);
        let between = |from_s: u64, until_s: u64| {
            let span = (10 + from_s) * SECOND..(10 + until_s) * SECOND;
            seen.iter().filter(|arrival| span.contains(&arrival.due_ns)).count()
        };
        assert!(between(0, 25).abs_diff(625) <= 1 && between(25, 50).abs_diff(1875) <= 1);
        assert!(between(50, 75).abs_diff(5000) <= 1, "{}", between(50, 75));
    }

    #[test]
    fn arrivals_are_read_strictly() {
        let read = |json: &str| serde_json::from_str::<ArrivalsSpec>(json);
        assert_eq!(read(r#"{"kind": "closed"}"#).unwrap(), ArrivalsSpec::default());
        let open = read(r#"{"kind": "open", "per_s": 10, "spacing": "poisson"}"#).unwrap();
        let spacing = Spacing::Poisson;
        assert_eq!(open, ArrivalsSpec::Open { per_s: 10.0, spacing, waiting_max: 1_000_000 });
        for odd in [
            r#"{"kind": "closed", "per_s": 10}"#,
            r#"{"kind": "open"}"#,
            r#"{"kind": "open", "per_s": 10, "rate": 1}"#,
            r#"{"kind": "ajar"}"#,
        ] {
            assert!(read(odd).is_err(), "{odd}");
        }
    }
}
