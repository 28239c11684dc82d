//! Times of statements: which exchanges are counted, and how long they took, on virtual time.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::time::Duration;

use crate::kit::{MS, SECOND, Simple, Virtual, is_update};
use drive::{
    measure::statements::{Groups, StatementResult},
    schedule::slowdowns::Slowdown,
};
use sim::{Call, Scripted, Step};
use workload::Workload;

fn results(outcome: &crate::kit::Outcomes) -> Vec<(String, u64, serde_json::Value)> {
    let groups = Groups::new(Simple::new(1).statements());
    let all = StatementResult::all(&outcome.meter.kinds[0].statements, &groups).unwrap();
    let json = |one: StatementResult| (one.name, one.count, serde_json::to_value(one.ns).unwrap());
    all.into_iter().map(json).collect()
}

#[test]
fn every_statement_is_timed_by_itself() {
    let outcome = Virtual::default().run(&Scripted::new(|call: &Call| {
        if is_update(call) { vec![Step::Wait(Duration::from_millis(100))] } else { Vec::new() }
    }));
    let ended = outcome.window(0).succeeded + outcome.window(0).drained;
    let results = results(&outcome);
    let named: Vec<&str> = results.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(named, ["begin", "update", "commit"], "a COMMIT last; no rollback was executed");
    for (name, count, ns) in &results {
        assert_eq!(*count, ended, "{name}");
        let (low, high) = if name == "update" { (99 * MS, 103 * MS) } else { (0, 3 * MS) };
        for key in ["p50", "max", "mean"] {
            let value = ns[key].as_u64().unwrap();
            assert!((low..=high).contains(&value), "{name}: {key} is {value}");
        }
    }
}

#[test]
fn exchanges_are_slower_when_that_is_asked_for_and_only_then() {
    let slow = Slowdown { from_s: 5.0, until_s: 8.0, spin_ns: 0, delay_ns: 30 * MS };
    let server = || {
        Scripted::new(|call: &Call| {
            let pause = Step::Wait(Duration::from_millis(10));
            if is_update(call) { vec![pause] } else { Vec::new() }
        })
    };
    let usual = Virtual::default().run(&server());
    let slower = Virtual { slowdowns: vec![slow], ..Virtual::default() }.run(&server());
    let ended = |outcome: &crate::kit::Outcomes| outcome.window(0).succeeded;
    // A transaction has three exchanges: 100 ms instead of 10 ms for three of the ten seconds.
    let expected = ended(&usual) * 7 / 10 + ended(&usual) * 3 / 100;
    let near = expected.abs_diff(ended(&slower));
    assert!(near <= 5, "{} instead of {expected}", ended(&slower));
    for (name, _, ns) in results(&slower) {
        let longest = if name == "update" { 40 * MS } else { 30 * MS };
        assert!(ns["max"].as_u64().unwrap() >= longest - MS, "{name}: {ns}");
    }
}

#[test]
fn only_last_attempts_of_requests_of_the_window_count() {
    let mut updates = 0;
    let scripted = Scripted::new(move |call: &Call| {
        if !is_update(call) {
            return Vec::new();
        }
        updates += 1;
        // Every second attempt is in vain, and ends sooner than one that succeeds.
        let pause = Step::Wait(Duration::from_millis(if updates % 2 == 1 { 10 } else { 50 }));
        if updates % 2 == 1 {
            return vec![pause, Step::error("40001", "could not serialize access")];
        }
        vec![pause]
    });
    let outcome = Virtual { warmup_ns: 2 * SECOND, ..Virtual::default() }.run(&scripted);
    let (window, run) = (outcome.window(0), outcome.run(0));
    assert!(run.succeeded > window.succeeded && window.retries_40001 > 0, "{window:?} {run:?}");
    for (name, count, ns) in results(&outcome) {
        assert_eq!(count, window.succeeded + window.drained, "{name}");
        let p50 = ns["p50"].as_u64().unwrap();
        assert!(name != "update" || p50 >= 49 * MS, "{name}: {p50}");
    }
}
