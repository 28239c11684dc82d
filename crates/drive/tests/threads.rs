//! Whole runs: real threads, real time, a scripted server on a Unix socket. Windows are short and
//! nothing depends on how much is done in them.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod kit;

use std::{collections::BTreeMap, time::Duration};

use drive::{
    result::{RunOutcome, RunResult},
    run::Run,
    spec::Spec,
};
use kit::{Simple, identity, is_update};
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
    let change = json!({"threads": threads, "connections": connections, "terminals": 6});
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
            let also = &other[terminal];
            let common = sent.len().min(also.len());
            assert!(common > 0, "terminal {terminal} was served");
            assert_eq!(sent[..common], also[..common], "terminal {terminal}");
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
    let run = Run::start_with(spec(&listener, &change), workload).unwrap();
    let result = serde_json::to_value(finish(&run)).unwrap();
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
    let timed = number(&window["succeeded"]) + number(&window["rolled_back"]);
    let histogram = drive::histogram::decode(result["kinds"][0]["response"].as_str().unwrap());
    assert_eq!(histogram.unwrap().len(), timed);
    let client = &result["client"];
    assert!(client["user_s"].as_f64().unwrap() + client["system_s"].as_f64().unwrap() > 0.0);
    assert!((client["window_s"].as_f64().unwrap() - 0.3).abs() < 0.2);
    assert_eq!(client["threads"], 2);
    assert_eq!(run.progress().connected, 0, "all hung up");
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
    assert!(why.contains(&host) && why.contains("port 5432"), "{why}");
    assert!(result.kinds[0].run.succeeded > 0, "what was measured is kept");
}

#[test]
fn run_that_cannot_begin_says_where_and_why() {
    let listener = Listener::start(Scripted::new(quick)).unwrap();
    let mut spec = spec(&listener, &json!({"threads": 2}));
    spec.connection.port = 1;
    let run = Run::start_with(spec, Simple::new(1)).unwrap();
    let error = run.wait(PATIENCE).unwrap().unwrap_err();
    assert!(error.fact.contains("port 1:") && error.fact.contains(".s.PGSQL.1"), "{}", error.fact);
    assert_eq!(error.kind.name(), "target");

    let unknown = self::spec(&listener, &json!({}));
    let error = Run::start(unknown).unwrap_err();
    assert!(error.fact.contains("workload.kind is simple, known is tpcc"), "{}", error.fact);
}
