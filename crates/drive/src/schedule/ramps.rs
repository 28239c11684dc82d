//! Ramps and steps: a factor over the time of a run, piecewise linear. Of an open loop it
//! multiplies the rate, of a closed one the number of active terminals. No clock.
//!
//! Steps fill the window. Before it the factor is that of its first instant, after it that of its
//! last, so that a warm-up meets the load that the window begins with.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    error::RunError,
    schedule::timeline::{SECONDS_MAX, Timeline, nanoseconds},
};

/// Of a step.
const SECONDS_MIN: f64 = 0.001;
/// Of an open loop's rate.
pub const FACTOR_MAX: f64 = 1000.0;

/// A part of the window with one factor, or with one that grows or falls evenly.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(try_from = "StepKeys")]
#[schemars(with = "StepKeys")]
pub struct Step {
    /// Its length.
    pub seconds: f64,
    /// Factor at its begin.
    pub from: f64,
    /// Factor at its end.
    pub to: f64,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepKeys {
    #[schemars(range(min = SECONDS_MIN, max = SECONDS_MAX))]
    seconds: f64,
    #[schemars(range(min = 0.0, max = FACTOR_MAX))]
    factor: Option<f64>,
    #[schemars(range(min = 0.0, max = FACTOR_MAX))]
    from: Option<f64>,
    #[schemars(range(min = 0.0, max = FACTOR_MAX))]
    to: Option<f64>,
}

impl TryFrom<StepKeys> for Step {
    type Error = String;

    fn try_from(keys: StepKeys) -> Result<Self, String> {
        let StepKeys { seconds, factor, from, to } = keys;
        match (factor, from, to) {
            (Some(factor), None, None) => Ok(Self { seconds, from: factor, to: factor }),
            (None, Some(from), Some(to)) => Ok(Self { seconds, from, to }),
            _ => Err("a step has either factor, or from and to".into()),
        }
    }
}

/// Most steps of a run; each has histograms of its own.
pub const STEPS_MAX: usize = 100;

/// Refuses steps that do not fill the window, or whose factor goes beyond `factor_max`.
///
/// # Errors
///
/// The first value out of range.
pub fn check(steps: &[Step], window_s: f64, factor_max: f64) -> Result<(), RunError> {
    if steps.is_empty() {
        return Ok(());
    }
    if steps.len() > STEPS_MAX {
        let fact = format!("steps are {}, allowed are at most {STEPS_MAX}", steps.len());
        return Err(RunError::spec(fact, None));
    }
    for (index, step) in steps.iter().enumerate() {
        if !(SECONDS_MIN..=window_s).contains(&step.seconds) {
            let fact = format!("steps[{index}].seconds is {}, allowed are", step.seconds);
            let range = format!("{SECONDS_MIN} to window_s, which is {window_s}");
            return Err(RunError::spec(format!("{fact} {range}"), None));
        }
        for factor in [step.from, step.to] {
            if !(0.0..=factor_max).contains(&factor) {
                let fact = format!("steps[{index}] has factor {factor}, allowed are 0 to");
                return Err(RunError::spec(
                    format!("{fact} {factor_max}"),
                    Some("It multiplies the rate, or in a closed loop the active terminals."),
                ));
            }
        }
    }
    let seconds: f64 = steps.iter().map(|step| step.seconds).sum();
    if (seconds - window_s).abs() > 1e-6 {
        return Err(RunError::spec(
            format!("steps last {seconds} s in all, window_s is {window_s}"),
            Some("Let the steps fill the window."),
        ));
    }
    Ok(())
}

/// A stretch of time with an even slope.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    from_ns: u64,
    until_ns: u64,
    from: f64,
    to: f64,
    /// Factor times seconds from the start of the warm-up to `from_ns`.
    area: f64,
}

impl Stretch {
    fn seconds(&self) -> f64 {
        seconds(self.until_ns - self.from_ns)
    }

    /// Change of the factor in a second.
    fn slope(&self) -> f64 {
        if self.is_level() { 0.0 } else { (self.to - self.from) / self.seconds() }
    }

    #[expect(clippy::float_cmp, reason = "both come from one number where the step is level")]
    fn is_level(&self) -> bool {
        self.from == self.to
    }

    fn factor(&self, at_ns: u64) -> f64 {
        self.from + self.slope() * seconds(at_ns - self.from_ns)
    }

    fn area_until(&self, at_ns: u64) -> f64 {
        let span = seconds(at_ns - self.from_ns);
        self.area + span * (self.from + self.slope() * span / 2.0)
    }

    fn after(&self, span_s: f64) -> u64 {
        self.from_ns.saturating_add(nanoseconds(span_s)).min(self.until_ns)
    }
}

/// The factor over the time of a run.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Warm-up, the steps, and what follows, without gaps; at least one.
    stretches: Vec<Stretch>,
    steps: usize,
}

impl Profile {
    /// These steps on a run's timeline; none: always 1.
    #[must_use]
    pub fn new(steps: &[Step], timeline: &Timeline) -> Self {
        let first = steps.first().map_or(1.0, |step| step.from);
        let last = steps.last().map_or(1.0, |step| step.to);
        let mut profile = Self { stretches: Vec::with_capacity(steps.len() + 2), steps: 0 };
        profile.add(timeline.start_ns, timeline.window.from_ns, first, first);
        let mut end_s = 0.0;
        for step in steps {
            let from_ns = timeline.window.from_ns + nanoseconds(end_s);
            end_s += step.seconds;
            let until_ns = timeline.window.from_ns + nanoseconds(end_s);
            profile.add(from_ns, until_ns, step.from, step.to);
        }
        profile.add(timeline.window.from_ns + nanoseconds(end_s), u64::MAX, last, last);
        profile.steps = steps.len();
        profile
    }

    fn add(&mut self, from_ns: u64, until_ns: u64, from: f64, to: f64) {
        let area = self.stretches.last().map_or(0.0, |last| last.area_until(last.until_ns));
        self.stretches.push(Stretch { from_ns, until_ns, from, to, area });
    }

    /// Whether the factor is the same all the time.
    #[must_use]
    pub fn is_level(&self) -> bool {
        self.steps == 0
    }

    /// The factor at an instant of the run.
    #[must_use]
    pub fn factor(&self, at_ns: u64) -> f64 {
        let stretch = self.at(at_ns);
        stretch.factor(at_ns.max(stretch.from_ns))
    }

    /// The step that an instant lies in.
    #[must_use]
    pub fn step(&self, at_ns: u64) -> Option<usize> {
        self.index(at_ns).checked_sub(1).filter(|step| *step < self.steps)
    }

    /// How many steps there are.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.steps
    }

    /// Start and end of a step.
    #[must_use]
    pub fn step_ns(&self, step: usize) -> (u64, u64) {
        let stretch = self.stretches[step + 1];
        (stretch.from_ns, stretch.until_ns)
    }

    /// Factor at begin and end of a step.
    #[must_use]
    pub fn step_factors(&self, step: usize) -> [f64; 2] {
        let stretch = self.stretches[step + 1];
        [stretch.from, stretch.to]
    }

    /// Mean factor between two instants, the second later than the first.
    #[must_use]
    pub fn mean(&self, from_ns: u64, until_ns: u64) -> f64 {
        let area = |at_ns: u64| self.at(at_ns).area_until(at_ns);
        (area(until_ns) - area(from_ns)) / seconds(until_ns - from_ns)
    }

    /// When factor times seconds since the start of the warm-up reach `area`, if ever.
    #[must_use]
    pub fn reaches(&self, area: f64) -> Option<u64> {
        let after = self.stretches.partition_point(|stretch| stretch.area <= area);
        let stretch = self.stretches[after.checked_sub(1)?];
        let rest = area - stretch.area;
        if rest <= 0.0 {
            return Some(stretch.from_ns);
        }
        // Root of from * x + slope * x * x / 2 = rest, in the form that also holds for slope 0.
        let square = stretch.from.powi(2) + 2.0 * stretch.slope() * rest;
        let root = stretch.from + square.max(0.0).sqrt();
        (root > 0.0).then(|| stretch.after(2.0 * rest / root))
    }

    /// The first instant from `at_ns` on at which the factor is at least `level`, if any.
    #[must_use]
    pub fn rises(&self, level: f64, at_ns: u64) -> Option<u64> {
        let first = self.index(at_ns);
        self.stretches[first..].iter().find_map(|stretch| {
            let begin_ns = at_ns.max(stretch.from_ns);
            if begin_ns >= stretch.until_ns {
                None
            } else if stretch.factor(begin_ns) >= level - TOLERANCE {
                Some(begin_ns)
            } else if stretch.to >= level {
                let climb_s = (level - stretch.from) / stretch.slope();
                Some(stretch.after(climb_s).max(begin_ns))
            } else {
                None
            }
        })
    }

    /// Before the warm-up counts as its begin.
    fn index(&self, at_ns: u64) -> usize {
        let after = self.stretches.partition_point(|stretch| stretch.from_ns <= at_ns);
        after.saturating_sub(1)
    }

    fn at(&self, at_ns: u64) -> &Stretch {
        &self.stretches[self.index(at_ns)]
    }
}

/// Of a factor that was computed in two ways.
const TOLERANCE: f64 = 1e-9;

fn seconds(ns: u64) -> f64 {
    crate::measure::cpu::nanos(ns)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::timeline::Window;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    /// Ten seconds of warm-up from 5 s on, then a window of so many.
    fn timeline(window_s: f64) -> Timeline {
        let window = Window { from_ns: 15 * SECOND, until_ns: 15 * SECOND + nanoseconds(window_s) };
        Timeline { start_ns: 5 * SECOND, start_unix_ns: 0, window, drain_ns: 0 }
    }

    fn step(seconds: f64, from: f64, to: f64) -> Step {
        Step { seconds, from, to }
    }

    #[test]
    fn without_steps_the_factor_is_one() {
        let profile = Profile::new(&[], &timeline(30.0));
        assert!(profile.is_level() && (profile.factor(7 * SECOND) - 1.0).abs() < 1e-12);
        assert_eq!(profile.reaches(3.0), Some(8 * SECOND));
        assert_eq!(profile.reaches(30.0), Some(35 * SECOND));
        assert_eq!(profile.step(20 * SECOND), None);
    }

    #[test]
    fn staircase_and_ramp_have_their_factors_at_every_instant() {
        let steps = [step(10.0, 0.5, 0.5), step(10.0, 1.0, 2.0), step(10.0, 2.0, 0.0)];
        let profile = Profile::new(&steps, &timeline(30.0));
        for (at_s, factor, step) in [
            (5, 0.5, None),
            (15, 0.5, Some(0)),
            (25, 1.0, Some(1)),
            (30, 1.5, Some(1)),
            (40, 1.0, Some(2)),
            (45, 0.0, None),
            (99, 0.0, None),
        ] {
            assert!((profile.factor(at_s * SECOND) - factor).abs() < 1e-9, "at {at_s} s");
            assert_eq!(profile.step(at_s * SECOND), step, "at {at_s} s");
        }
        assert!((profile.mean(25 * SECOND, 35 * SECOND) - 1.5).abs() < 1e-9);
        // 5 of the warm-up, 5, 15, 10; half of the ramp's 15 are reached after 5.8 s.
        assert_eq!(profile.reaches(5.0), Some(15 * SECOND));
        assert_eq!(profile.reaches(10.0), Some(25 * SECOND));
        let middle_ns = profile.reaches(17.5).unwrap();
        assert!((seconds(middle_ns) - 25.0 - (10.0 * (2.5_f64.sqrt() - 1.0))).abs() < 1e-6);
        assert_eq!(profile.reaches(36.0), None, "there are 35 in all");
    }

    #[test]
    fn factor_rises_to_a_level_at_the_first_instant_that_has_it() {
        let steps = [step(10.0, 0.0, 1.0), step(10.0, 0.2, 0.2), step(10.0, 0.9, 0.9)];
        let profile = Profile::new(&steps, &timeline(30.0));
        assert_eq!(profile.rises(0.5, 5 * SECOND), Some(20 * SECOND));
        assert_eq!(profile.rises(0.5, 22 * SECOND), Some(22 * SECOND));
        assert_eq!(profile.rises(0.5, 25 * SECOND), Some(35 * SECOND));
        assert_eq!(profile.rises(0.95, 25 * SECOND), None);
        assert_eq!(profile.rises(0.95, 20 * SECOND), Some(24 * SECOND + SECOND / 2));
    }

    #[test]
    fn steps_that_cannot_be_are_refused_with_both_values() {
        let read = |json: &str| serde_json::from_str::<Vec<Step>>(json).map_err(|e| e.to_string());
        let both = read(r#"[{"seconds": 1, "factor": 1, "to": 2}]"#).unwrap_err();
        assert!(both.contains("either factor, or from and to"), "{both}");
        let odd = read(r#"[{"seconds": 1, "factors": 1}]"#).unwrap_err();
        assert!(odd.contains("unknown field `factors`"), "{odd}");
        let refused = |steps: &[Step]| check(steps, 30.0, 1.0).unwrap_err().fact;
        assert!(refused(&[step(10.0, 1.0, 1.0)]).contains("last 10 s in all, window_s is 30"));
        assert!(refused(&[step(30.0, 1.0, 1.5)]).contains("factor 1.5, allowed are 0 to 1"));
        assert!(refused(&[step(31.0, 1.0, 1.0)]).contains("steps[0].seconds is 31"));
        assert!(refused(&[step(0.3, 1.0, 1.0); 101]).contains("steps are 101"));
        assert!(check(&[step(0.3, 0.0, 1.0); 100], 30.0, 1.0).is_ok());
    }

    proptest! {
        /// The inverse of the area is its inverse, and never goes back in time.
        #[test]
        fn reaching_an_area_takes_its_time(
            steps in prop::collection::vec((1_u32..20, 0.0..3.0_f64, 0.0..3.0_f64), 1..6),
            shares in prop::collection::vec(0.0..1.0_f64, 1..40),
        ) {
            let steps: Vec<Step> =
                steps.iter().map(|&(s, from, to)| step(f64::from(s), from, to)).collect();
            let window_s = steps.iter().map(|step| step.seconds).sum();
            let timeline = timeline(window_s);
            let profile = Profile::new(&steps, &timeline);
            let lasting_s = seconds(timeline.window.until_ns - timeline.start_ns);
            let all = profile.mean(timeline.start_ns, timeline.window.until_ns) * lasting_s;
            let mut shares = shares;
            shares.sort_by(f64::total_cmp);
            let mut before_ns = timeline.start_ns;
            for share in shares {
                let at_ns = profile.reaches(share * all).unwrap();
                prop_assert!(before_ns <= at_ns && at_ns <= timeline.window.until_ns);
                if at_ns > timeline.start_ns {
                    let passed_s = seconds(at_ns - timeline.start_ns);
                    let area = profile.mean(timeline.start_ns, at_ns) * passed_s;
                    prop_assert!((area - share * all).abs() < 1e-5, "{area} {}", share * all);
                }
                before_ns = at_ns;
            }
        }
    }
}
