//! Open loop, ramps and steps, limits: what becomes due, and that nothing is lost. On virtual time.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use crate::kit::{MS, Outcomes, SECOND, Simple, Virtual, is_update};
use drive::schedule::{
    arrivals::{ArrivalsSpec, Spacing},
    ramps::Step as Stair,
};
use proptest::prelude::*;
use sim::{Call, Scripted, Step};

fn slow(ms: u64) -> Scripted {
    Scripted::new(move |call: &Call| {
        if is_update(call) { vec![Step::Wait(Duration::from_millis(ms))] } else { Vec::new() }
    })
}

fn open(per_s: f64, spacing: Spacing) -> ArrivalsSpec {
    ArrivalsSpec::Open { per_s, spacing, waiting_max: 1_000_000 }
}

fn stair(seconds: f64, from: f64, to: f64) -> Stair {
    Stair { seconds, from, to }
}

#[test]
fn open_loop_keeps_its_rate_whatever_the_server_does() {
    for ms in [1, 30] {
        let arrivals = open(100.0, Spacing::Even);
        let outcome =
            Virtual { terminals: 7, arrivals, warmup_ns: 2 * SECOND, ..Virtual::default() }
                .run(&slow(ms));
        let counts = outcome.window(0);
        let carried_in = counts.due - 1000;
        assert_eq!(outcome.meter.due.0[..12], [100; 12], "{ms} ms");
        if ms == 1 {
            assert_eq!((counts.succeeded, carried_in), (1000, 0));
        } else {
            // 33 a second are served: the others wait, longer and longer.
            assert!((330..=334).contains(&counts.succeeded) && carried_in > 120, "{counts:?}");
            assert!(outcome.meter.kinds[0].queue.max() > 7 * SECOND);
            assert!(outcome.meter.kinds[0].service.max() < 31 * MS);
        }
    }
}

#[test]
fn arrivals_of_an_open_loop_are_the_next_requests_of_their_terminals() {
    let arrivals = open(100.0, Spacing::Even);
    let outcome = Virtual { terminals: 7, arrivals, ..Virtual::default() }.run(&slow(1));
    for (index, request) in (0..).zip(&outcome.meter.audit.requests) {
        assert_eq!(*request, (index % 7, u64::from(index / 7)));
    }
}

#[test]
fn full_queue_skips_what_comes_and_counts_it() {
    let outcome = Virtual {
        terminals: 7,
        arrivals: open(1000.0, Spacing::Even),
        waiting_max: 50,
        window_ns: 2 * SECOND,
        ..Virtual::default()
    }
    .run(&slow(10));
    let counts = outcome.window(0);
    assert_eq!((counts.due, counts.failed), (2000, 0), "{counts:?}");
    assert!((195..=200).contains(&counts.succeeded), "{counts:?}");
    assert!((50..=51).contains(&counts.unfinished), "{counts:?}");
    assert_eq!(counts.skipped, 2000 - counts.succeeded - counts.unfinished);
    assert_eq!(outcome.meter.skipped.0.iter().sum::<u64>(), outcome.run(0).skipped);
    assert_eq!(outcome.meter.kinds[0].exact_below.response.ns(), Some(0), "all are lower bounds");
    // Fifty wait before each: the limit bounds the response time too.
    assert!(outcome.meter.kinds[0].response.max() < 520 * MS);
}

#[test]
fn deferred_requests_of_an_open_loop_are_requests_like_others() {
    let mut workload = Simple::new(1);
    workload.deferred_every = 2;
    let arrivals = open(50.0, Spacing::Poisson);
    let outcome = Virtual { workload, terminals: 7, arrivals, ..Virtual::default() }.run(&slow(1));
    let (work, background) = (outcome.window(0), outcome.window(1));
    // 500 +- 22; five times that.
    assert!((390..610).contains(&(work.due + background.due)));
    assert!(work.due.abs_diff(background.due) < 15, "{work:?} {background:?}");
}

fn stairs(arrivals: ArrivalsSpec, think_ms: u64) -> Outcomes {
    let mut workload = Simple::new(1);
    workload.think_ns = think_ms * MS;
    Virtual {
        workload,
        terminals: 20,
        connections: 20,
        arrivals,
        warmup_ns: 2 * SECOND,
        steps: vec![stair(4.0, 0.25, 0.25), stair(2.0, 0.25, 1.0), stair(4.0, 0.5, 0.5)],
        ..Virtual::default()
    }
    .run(&slow(1))
}

#[test]
fn steps_of_an_open_loop_change_its_rate() {
    let outcome = stairs(open(200.0, Spacing::Even), 0);
    let due = &outcome.meter.due.0;
    assert_eq!(due[..6], [50; 6]);
    // The ramp's mean is 0.4375, then 0.8125.
    assert!(due[6].abs_diff(87) <= 1 && due[7].abs_diff(163) <= 1, "{due:?}");
    assert!(due[8..12].iter().all(|count| count.abs_diff(100) <= 1), "{due:?}");
    let of_step: Vec<u64> = outcome.meter.steps.iter().map(|kinds| kinds[0].counts.due).collect();
    assert_eq!(of_step[0], 200);
    assert!(of_step[1].abs_diff(250) <= 1 && of_step[2].abs_diff(400) <= 1, "{of_step:?}");
    assert_eq!(of_step.iter().sum::<u64>(), outcome.window(0).due);
    for (kinds, ended) in outcome.meter.steps.iter().zip(&outcome.meter.ended) {
        assert!(kinds[0].response.len().abs_diff(*ended) <= 1);
    }
}

#[test]
fn steps_of_a_closed_loop_change_the_number_of_active_terminals() {
    let outcome = stairs(ArrivalsSpec::default(), 99);
    // Ten requests a second of each active terminal.
    let due = &outcome.meter.due.0;
    assert!(due[1..6].iter().all(|count| count.abs_diff(50) <= 5), "{due:?}");
    assert!(due[6].abs_diff(87) <= 12 && due[7].abs_diff(163) <= 22, "{due:?}");
    assert!(due[9..12].iter().all(|count| count.abs_diff(100) <= 10), "{due:?}");
    let mut late: Vec<u32> = outcome
        .meter
        .audit
        .requests
        .iter()
        .rev()
        .take(300)
        .map(|(terminal, _)| *terminal)
        .collect();
    late.sort_unstable();
    late.dedup();
    assert_eq!(late, (0..10).collect::<Vec<_>>(), "the first half is left");
}

#[test]
fn terminals_that_are_never_active_ask_for_nothing() {
    let outcome = Virtual {
        terminals: 4,
        steps: vec![stair(9.0, 0.0, 0.0), stair(1.0, 0.0, 0.5)],
        ..Virtual::default()
    }
    .run(&slow(100));
    let mut asked: Vec<u32> = outcome.meter.audit.requests.iter().map(|r| r.0).collect();
    asked.dedup();
    assert_eq!((asked[0], outcome.meter.due.0[..9].iter().sum::<u64>()), (0, 0));
    assert!(asked.contains(&1) && !asked.contains(&2) && !asked.contains(&3), "{asked:?}");
}

#[test]
fn run_ends_when_all_terminals_made_all_their_requests() {
    for (terminals, deferred_every, connections) in [(1, 0, 1), (5, 2, 1), (5, 3, 3), (3, 1, 2)] {
        let mut workload = Simple::new(1);
        workload.deferred_every = deferred_every;
        let outcome = Virtual {
            workload,
            terminals,
            connections,
            requests_max: Some(20),
            window_ns: 3600 * SECOND,
            ..Virtual::default()
        }
        .run(&slow(10));
        let (work, background) = (outcome.window(0), outcome.window(1));
        let all = u64::from(terminals) * 20;
        assert_eq!(work.succeeded + background.succeeded, all, "{work:?} {background:?}");
        assert_eq!((work.unfinished, background.unfinished), (0, 0));
        assert!(outcome.lasted_ns < 11 * MS * all, "{}", outcome.lasted_ns);
        assert!(!outcome.shared.is_stopped());
        let mut asked = outcome.meter.audit.requests.clone();
        asked.sort_unstable();
        let wanted = (0..terminals).flat_map(|t| (0..20).map(move |n| (t, n)));
        assert!(asked.into_iter().eq(wanted));
        assert_eq!(outcome.meter.digest.requests, all);
    }
}

#[test]
fn digest_depends_on_what_was_asked_and_not_on_the_order() {
    let digest = |seed: u64, connections: usize, ms: u64, requests_max: u64| {
        let workload = Simple::new(seed);
        let requests_max = Some(requests_max);
        let run =
            Virtual { workload, terminals: 6, connections, requests_max, ..Virtual::default() };
        run.run(&slow(ms)).meter.digest
    };
    let one = digest(1, 1, 1, 9);
    assert_eq!(one, digest(1, 5, 7, 9));
    assert_ne!(one, digest(2, 1, 1, 9), "another seed");
    assert_ne!(one, digest(1, 1, 1, 10), "one more of each");
}

#[test]
fn keying_and_thinking_are_summed_as_they_were() {
    let mut workload = Simple::new(1);
    (workload.keying_ns, workload.think_ns) = (300 * MS, 600 * MS);
    let outcome = Virtual { workload, ..Virtual::default() }.run(&slow(100));
    let kind = &outcome.meter.kinds[0];
    let ended = u128::from(kind.response.len());
    assert_eq!((kind.keying_ns, kind.think_ns), (ended * 300_000_000, ended * 600_000_000));
}

fn arrivals() -> impl Strategy<Value = ArrivalsSpec> {
    let spacing = prop_oneof![Just(Spacing::Even), Just(Spacing::Poisson)];
    prop_oneof![
        Just(ArrivalsSpec::default()),
        (1.0..300.0_f64, spacing).prop_map(|(per_s, spacing)| open(per_s, spacing)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever the schedule, due = succeeded + rolled back + failed + skipped + unfinished, of
    /// the run, the window and each step; the worker asserts it, here the sums are compared.
    #[test]
    fn requests_of_any_schedule_are_conserved(
        arrivals in arrivals(),
        stairs in prop::collection::vec((0.0..1.0_f64, 0.0..1.0_f64), 0..5),
        terminals in 1_u32..12,
        connections in 1_usize..5,
        work_ms in 1_u64..200,
        (think_ms, keying_ms) in (prop_oneof![Just(0_u64), 1_u64..500], 0_u64..300),
        (deferred_every, rollback_every) in (0_u64..4, 0_u64..5),
        waiting_max in 1_usize..40,
        requests_max in prop::option::of(1_u64..30),
        (warmup_ms, window_ms, drain_ms) in (0_u64..1500, 1_u64..3000, 0_u64..500),
        stop_ms in prop::option::of(1_u64..4000),
        fails in 0_u64..9,
    ) {
        let mut workload = Simple::new(3);
        (workload.think_ns, workload.keying_ns) = (think_ms * MS, keying_ms * MS);
        (workload.deferred_every, workload.rollback_every) = (deferred_every, rollback_every);
        let closed = arrivals == ArrivalsSpec::default();
        #[allow(clippy::cast_precision_loss, reason = "some thousands")]
        let seconds = window_ms as f64 / 1e3 / stairs.len().max(1) as f64;
        let steps: Vec<Stair> = stairs.iter().map(|s| stair(seconds, s.0, s.1)).collect();
        let mut calls = 0_u64;
        let scripted = Scripted::new(move |call: &Call| {
            calls += 1;
            if !is_update(call) {
                Vec::new()
            } else if fails > 0 && calls.is_multiple_of(20 * fails) {
                vec![Step::Wait(Duration::from_millis(1)), Step::error("40001", "scripted")]
            } else {
                vec![Step::Wait(Duration::from_millis(work_ms))]
            }
        });
        let outcome = Virtual {
            workload, connections, terminals, arrivals, waiting_max, steps,
            requests_max: requests_max.filter(|_| closed),
            warmup_ns: warmup_ms * MS,
            window_ns: window_ms * MS,
            drain_ns: drain_ms * MS,
            deferred_max: connections,
            stop_after_ns: stop_ms.map(|ms| ms * MS),
            ..Virtual::default()
        }
        .run(&scripted);
        let runs = [outcome.run(0), outcome.run(1)];
        let sum = |of: fn(&drive::measure::counts::Counts) -> u64| runs.iter().map(of).sum::<u64>();
        prop_assert_eq!(outcome.meter.due.0.iter().sum::<u64>(), sum(|c| c.due));
        prop_assert_eq!(outcome.meter.skipped.0.iter().sum::<u64>(), sum(|c| c.skipped));
        let ended = sum(|c| c.succeeded) + sum(|c| c.rolled_back) + sum(|c| c.failed);
        prop_assert_eq!(outcome.meter.digest.requests, ended);
        prop_assert!(!closed || sum(|c| c.skipped) == 0);
        for kind in 0..2 {
            let of_steps = outcome.meter.steps.iter().map(|kinds| kinds[kind].counts);
            let (due, succeeded) =
                of_steps.fold((0, 0), |(due, ok), c| (due + c.due, ok + c.succeeded));
            let window = outcome.window(kind);
            prop_assert!(due <= window.due && succeeded <= window.succeeded);
            // Every request that became due in the window did so in a step.
            let with_steps = !stairs.is_empty();
            prop_assert!(!with_steps || warmup_ms > 0 || due == window.due, "{due} {window:?}");
        }
        if let Some(most) = requests_max.filter(|_| closed) {
            prop_assert!(sum(|c| c.due) <= most * u64::from(terminals));
        }
    }
}
