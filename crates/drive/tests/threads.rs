//! Whole runs: real threads, real time, a scripted server on a Unix socket. Windows are short and
//! nothing depends on how much is done in them.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{collections::BTreeMap, time::Duration};

use crate::kit::{Simple, identity, is_update};
use drive::{
    result::{RunOutcome, RunResult},
    run::Run,
    spec::Spec,
};
use serde_json::{Value, json};
use sim::{Call, Listener, Scripted, Step};

const PATIENCE: Duration = Duration::from_secs(60);

fn spec(listener: &Listener, change: &Value) -> Spec {
    let mut spec = json!({
        "version": 1, "workload": {"kind": "simple"}, "allow_debug": true,
        "connection": {"host": listener.host(), "port": listener.port(), "user": "u",
                       "database": "d"},
        "connections": 2, "terminals": 2, "warmup_s": 0.0, "window_s": 0.3, "drain_s": 10.0,
    });
    for (key, value) in change.as_object().unwrap() {
        spec[key] = value.clone();
    }
    Spec::parse(&spec.to_string()).unwrap()
}

fn finish(run: &Run) -> RunResult {
    run.wait(PATIENCE).unwrap().unwrap()
}

fn quick(_: &Call) -> Vec<Step> {
    Vec::new()
}

/// What was sent for each terminal, in order.
fn statements_of_terminals(scripted: &Scripted) -> BTreeMap<i32, Vec<(i64, i64)>> {
    let mut sent: BTreeMap<i32, Vec<(i64, i64)>> = BTreeMap::new();
    for call in scripted.log().calls().iter().filter(|call| is_update(call)) {
        let (terminal, number, value) = identity(call);
        sent.entry(terminal).or_default().push((number, value));
    }
    sent
}

fn drive(seed: u64, threads: usize, connections: usize) -> BTreeMap<i32, Vec<(i64, i64)>> {
    let scripted = Scripted::new(quick);
    let listener = Listener::start(scripted.clone()).unwrap();
    let change = json!({"threads": threads, "connections": connections, "terminals": 6,
                        "requests_max": 30, "window_s": 60.0});
    let run = Run::start_with(spec(&listener, &change), Simple::new(seed)).unwrap();
    assert_eq!(finish(&run).outcome, RunOutcome::Complete);
    statements_of_terminals(&scripted)
}

#[test]
fn equal_seeds_send_equal_statements_whatever_the_threads() {
    let one = drive(7, 1, 1);
    for other in [drive(7, 2, 2), drive(7, 3, 6)] {
        assert_eq!(one.len(), 6);
        for (terminal, sent) in &one {
            assert_eq!(sent.len(), 30, "each of terminal {terminal} was sent");
            assert_eq!(sent, &other[terminal], "terminal {terminal}");
        }
    }
    let different = drive(8, 1, 1);
    assert_ne!(one[&0][0], different[&0][0]);
}

#[test]
fn results_add_up_over_threads() {
    let scripted = Scripted::new(quick);
    let listener = Listener::start(scripted.clone()).unwrap();
    let change = json!({"threads": 2, "connections": 3, "terminals": 5});
    let mut workload = Simple::new(1);
    workload.rollback_every = 3;
    let begun_ns = drive::clock::steady_ns();
    let run = Run::start_with(spec(&listener, &change), workload).unwrap();
    let result = serde_json::to_value(finish(&run)).unwrap();
    let elapsed_s = Duration::from_nanos(drive::clock::steady_ns() - begun_ns).as_secs_f64();
    let counts = &result["kinds"][0]["run"];
    let number = |value: &Value| value.as_u64().unwrap();
    let commits = scripted.log().calls().iter().filter(|call| call.sql == "COMMIT").count();
    assert_eq!(number(&counts["succeeded"]), u64::try_from(commits).unwrap());
    let rollbacks = scripted.log().calls().iter().filter(|call| call.sql == "ROLLBACK").count();
    assert_eq!(number(&counts["rolled_back"]), u64::try_from(rollbacks).unwrap());
    let sum = |column: &Value| column.as_array().unwrap().iter().map(number).sum::<u64>();
    assert_eq!(sum(&result["seconds"]["committed"]["work"]), number(&counts["succeeded"]));
    assert_eq!(sum(&result["seconds"]["rolled_back"]), number(&counts["rolled_back"]));
    assert!((result["statements_per_transaction"].as_f64().unwrap() - 3.0).abs() < 1e-9);
    assert!((result["round_trips_per_transaction"].as_f64().unwrap() - 3.0).abs() < 1e-9);
    let window = &result["kinds"][0]["window"];
    let timed = ["succeeded", "rolled_back", "drained"].map(|name| number(&window[name]));
    assert_eq!(window["unfinished"], window["drained"], "the drain is long enough");
    assert_eq!((&result["outcome"], &result["given_up_s"]), (&json!("complete"), &json!(null)));
    let histogram =
        drive::measure::histogram::decode(result["kinds"][0]["response"].as_str().unwrap());
    assert_eq!(histogram.unwrap().len(), timed.iter().sum::<u64>());
    let client = &result["client"];
    assert!(client["user_s"].as_f64().unwrap() + client["system_s"].as_f64().unwrap() > 0.0);
    // When a busy machine lets the driver look at its CPU is not its own choice.
    let window_s = client["window_s"].as_f64().unwrap();
    assert!(window_s > 0.1 && window_s < elapsed_s, "{window_s} of {elapsed_s}");
    assert_eq!(client["threads"], 2);
    assert_eq!(run.progress().connected, 0, "all hung up");
}

#[test]
fn parts_are_driven_at_once_and_counted_apart() {
    let scripted = Scripted::new(quick);
    let listener = Listener::start(scripted.clone()).unwrap();
    let parts = json!([
        {"name": "first", "database": "one"},
        {"name": "second", "database": "two", "options": {"search_path": "s2"}},
    ]);
    let change = json!({"threads": 2, "connections": 3, "terminals": 5, "parts": parts,
                        "requests_max": 20, "window_s": 60.0});
    let run = Run::start_with(spec(&listener, &change), Simple::new(1)).unwrap();
    let result = finish(&run);
    assert_eq!(result.outcome, RunOutcome::Complete);
    assert_eq!(scripted.connections(), 6, "three of each part");
    assert_eq!((result.kinds[0].run.succeeded, result.stream_digest.requests), (200, 200));
    let names: Vec<&str> = result.parts.iter().map(|part| part.name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert!(result.parts.iter().all(|part| part.kinds[0].run.succeeded == 100));
    let asked = statements_of_terminals(&scripted);
    assert_eq!(asked.len(), 10, "each part has terminals of its own");
    for (terminal, mut sent) in asked {
        sent.sort_unstable();
        let numbers: Vec<i64> = sent.iter().map(|(number, _)| *number).collect();
        assert_eq!(numbers, (0..20).collect::<Vec<i64>>(), "requests of terminal {terminal}");
    }
    assert!(result.window_s < 60.0, "the window ends with the last request");
    assert!(result.client.thread_cpu_s.iter().all(|cpu_s| *cpu_s > 0.0), "{:?}", result.client);
}

#[test]
fn digest_is_the_same_whatever_the_threads() {
    let digest = |threads: usize, connections: usize, seed: u64| {
        let listener = Listener::start(Scripted::new(quick)).unwrap();
        let change = json!({"threads": threads, "connections": connections, "terminals": 6,
                            "requests_max": 30, "window_s": 60.0});
        let run = Run::start_with(spec(&listener, &change), Simple::new(seed)).unwrap();
        let digest = finish(&run).stream_digest;
        assert_eq!(digest.requests, 180);
        digest.sum
    };
    let one = digest(1, 1, 7);
    assert_eq!(one, digest(3, 6, 7));
    assert_ne!(one, digest(1, 1, 8));
}

#[test]
fn threads_of_an_open_loop_share_its_rate() {
    let listener = Listener::start(Scripted::new(quick)).unwrap();
    let arrivals = json!({"kind": "open", "per_s": 500, "spacing": "even"});
    let steps = json!([{"seconds": 0.2, "factor": 1.0}, {"seconds": 0.2, "from": 1, "to": 2}]);
    let change = json!({"threads": 2, "connections": 4, "terminals": 10, "arrivals": arrivals,
                        "window_s": 0.4, "steps": steps});
    let run = Run::start_with(spec(&listener, &change), Simple::new(1)).unwrap();
    let result = serde_json::to_value(finish(&run)).unwrap();
    let number = |value: &Value| value.as_u64().unwrap();
    // Due times are planned, so they do not depend on the machine: 100, and 150 of the ramp.
    assert_eq!(number(&result["kinds"][0]["window"]["due"]), 250);
    assert_eq!(number(&result["steps"][0]["kinds"][0]["counts"]["due"]), 100);
    assert_eq!(result["steps"][1]["factor"], json!([1.0, 2.0]));
    let factor = result["seconds"]["factor"][0].as_f64().unwrap();
    // 0.2 s of 1, 0.2 s of 1.5, and 2 until the second ends.
    assert!((factor - 1.7).abs() < 1e-9, "{factor}");
    let late = drive::measure::histogram::decode(result["late"].as_str().unwrap()).unwrap();
    assert_eq!(late.len(), 250, "each was waited for");
    // Waiting for a terminal is a part of each response; how long it is, is the machine's.
    let median = |of: &str| number(&result["kinds"][0][of]["p50"]);
    assert!(median("queue_ns") <= median("response_ns"));
}

#[test]
fn stop_ends_the_window_and_keeps_what_was_measured() {
    let listener = Listener::start(Scripted::new(quick)).unwrap();
    let change = json!({"window_s": 3600.0});
    let run = Run::start_with(spec(&listener, &change), Simple::new(1)).unwrap();
    let deadline = drive::clock::steady_ns() + 30_000_000_000;
    while run.progress().committed["work"] == 0 {
        assert!(drive::clock::steady_ns() < deadline, "something is committed");
        std::thread::yield_now();
    }
    run.stop();
    let result = finish(&run);
    assert_eq!(result.outcome, RunOutcome::Stopped);
    assert!(result.window_s < 40.0 && result.kinds[0].window.succeeded > 0);
    assert_eq!(run.progress().phase, drive::progress::Phase::Done);
}

#[test]
fn open_ends_the_warm_up_and_what_follows_is_the_window() {
    let listener = Listener::start(Scripted::new(quick)).unwrap();
    let change = json!({"warmup_s": 3600.0, "window_s": 3600.0, "threads": 2, "connections": 4,
                        "terminals": 4});
    let run = Run::start_with(spec(&listener, &change), Simple::new(1)).unwrap();
    let deadline = drive::clock::steady_ns() + 30_000_000_000;
    let until = |reached: &dyn Fn() -> bool, what: &str| {
        while !reached() {
            assert!(drive::clock::steady_ns() < deadline, "{what}");
            std::thread::yield_now();
        }
    };
    until(&|| run.progress().committed["work"] > 0, "something is committed in the warm-up");
    assert_eq!(run.progress().phase, drive::progress::Phase::Warmup);
    run.open();
    until(&|| run.progress().phase == drive::progress::Phase::Window, "the window begins");
    // What each of the four terminals had begun in the warm-up may end first, and is no part of it.
    let enough = run.progress().committed["work"] + 5;
    until(&|| run.progress().committed["work"] >= enough, "something is committed in the window");
    run.open(); // once it has begun, nothing changes
    run.stop();
    let result = finish(&run);
    let (window, whole) = (result.kinds[0].window, result.kinds[0].run);
    assert!(window.succeeded > 0 && window.succeeded < whole.succeeded, "{window:?} of {whole:?}");
    assert!(result.window_s < 30.0);
}

#[test]
fn server_that_goes_away_for_good_ends_the_run() {
    let mut calls = 0;
    let scripted = Scripted::new(move |_: &Call| {
        calls += 1;
        if calls > 50 { vec![Step::Close] } else { Vec::new() }
    });
    let listener = Listener::start(scripted).unwrap();
    let host = listener.host().to_str().unwrap().to_owned();
    // Every connection that is made again is closed at its first call; then none is let in.
    let change = json!({"window_s": 3600.0, "reconnect_give_up_s": 0.3, "drain_s": 1.0});
    let run = Run::start_with(spec(&listener, &change), Simple::new(1)).unwrap();
    let deadline = drive::clock::steady_ns() + 30_000_000_000;
    while run.progress().reconnects == 0 {
        assert!(drive::clock::steady_ns() < deadline, "the driver connects again");
        std::thread::yield_now();
    }
    drop(listener);
    let result = finish(&run);
    assert_eq!(result.outcome, RunOutcome::GaveUp);
    let why = result.error.unwrap();
    assert!(why.contains(&host) && why.contains("5432"), "{why}");
    assert!(result.kinds[0].run.succeeded > 0, "what was measured is kept");
}

#[test]
fn run_that_cannot_begin_says_where_and_why() {
    let listener = Listener::start(Scripted::new(quick)).unwrap();
    let nowhere = json!({"host": listener.host(), "port": 1, "user": "u", "database": "d"});
    let spec = spec(&listener, &json!({"threads": 2, "connection": nowhere}));
    let run = Run::start_with(spec, Simple::new(1)).unwrap();
    let error = run.wait(PATIENCE).unwrap().unwrap_err();
    assert!(
        error.fact.contains("connect to") && error.fact.contains(".s.PGSQL.1"),
        "{}",
        error.fact
    );
    assert_eq!(error.kind.name(), "target");

    let unknown = self::spec(&listener, &json!({}));
    let error = Run::start(unknown).unwrap_err();
    assert!(error.fact.contains("workload.kind is simple, known are tpcc"), "{}", error.fact);
}
