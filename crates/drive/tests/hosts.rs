//! One load on several hosts is the load of one: the same requests, and a result that adds up.
//! Here every host is a run of this process; nothing but its share tells them apart.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{sync::Arc, thread, time::Duration};

use drive::{
    clock::steady_ns,
    measure::times::COLUMNS,
    progress::Phase,
    result::{RunOutcome, RunResult, merge::merge},
    run::Run,
    shared::Instant,
    spec::Spec,
};
use serde_json::{Value, json};
use sim::null::{Known, NullServer, NullSpec, Respond};
use workload::{answers::Answers, plausible::Bound};

const PATIENCE: Duration = Duration::from_secs(120);
const SECOND_NS: u64 = 1_000_000_000;

fn null_server(workload: &Value) -> NullServer {
    let answers = Answers::of_spec(workload).unwrap();
    let known = Known::new(move |sql| {
        let plausible = answers.find(sql)?;
        let respond: Respond = Arc::new(move |params, out| plausible.answer(Bound(params), out));
        Some(respond)
    });
    let spec = json!({"host": "127.0.0.1", "port": 0, "threads": 1, "workload": workload});
    NullServer::start(&NullSpec::parse(&spec.to_string()).unwrap(), &known).unwrap()
}

/// A host's specification: all of the load, and which part of it is its own.
fn spec(server: &NullServer, workload: &Value, change: &Value, host: usize, hosts: usize) -> Spec {
    let mut spec = json!({
        "version": 1, "workload": workload, "allow_debug": true,
        "connection": {"host": "127.0.0.1", "port": server.status().port, "user": "u",
                       "database": "d"},
        "connections": 14, "terminals": 23, "threads": 1 + host % 2, "warmup_s": 0.0,
        "window_s": 600.0, "requests_max": 12, "begin": "when_told",
        "share": {"host": host, "hosts": hosts},
    });
    for (key, value) in change.as_object().unwrap() {
        spec[key] = value.clone();
    }
    Spec::parse(&spec.to_string()).unwrap()
}

fn until(what: impl Fn() -> bool) {
    let deadline_ns = steady_ns() + 60 * SECOND_NS;
    while !what() {
        assert!(steady_ns() < deadline_ns, "it came in time");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Each host's result of a load, all begun at one instant.
fn drive(workload: &Value, change: &Value, hosts: usize) -> Vec<Value> {
    let server = null_server(workload);
    let start = |host| Run::start(spec(&server, workload, change, host, hosts)).unwrap();
    let runs: Vec<Run> = (0..hosts).map(start).collect();
    until(|| runs.iter().all(|run| run.progress().phase == Phase::Ready));
    let begin = Instant { steady_ns: steady_ns() + SECOND_NS / 20, unix_ns: SECOND_NS };
    for run in &runs {
        run.begin(begin);
    }
    let result = |run: &Run| serde_json::to_value(run.wait(PATIENCE).unwrap().unwrap()).unwrap();
    runs.iter().map(result).collect()
}

fn merged(workload: &Value, results: &[Value]) -> Value {
    let texts: Vec<String> = results.iter().map(Value::to_string).collect();
    serde_json::to_value(merge(workload, &texts).unwrap()).unwrap()
}

fn sums(result: &Value) -> Vec<(String, Value)> {
    let kinds = result["kinds"].as_array().unwrap();
    kinds.iter().map(|kind| (kind["kind"].to_string(), kind["run"]["succeeded"].clone())).collect()
}

fn assert_same_load(workload: &Value, change: &Value, hosts: &[usize]) {
    let whole = drive(workload, change, 1).remove(0);
    assert_eq!(whole["outcome"], json!("complete"));
    assert!(whole.get("tally").is_none(), "one host alone has nothing to add");
    for &hosts in hosts {
        let parts = drive(workload, change, hosts);
        let all = merged(workload, &parts);
        assert_eq!(all["stream_digest"], whole["stream_digest"], "{hosts} hosts");
        assert_eq!(sums(&all), sums(&whole), "{hosts} hosts");
        assert!(parts.iter().all(|part| part["stream_digest"] != whole["stream_digest"]));
        let due = |one: &Value| one["kinds"][0]["run"]["due"].as_u64().unwrap();
        assert_eq!(parts.iter().map(due).sum::<u64>(), due(&whole));
    }
}

#[test]
fn a_closed_load_is_the_same_on_any_number_of_hosts() {
    let tpcc = json!({"kind": "tpcc", "warehouses": 4, "seed": 11});
    assert_same_load(&tpcc, &json!({}), &[3, 7]);
    // A terminal keys and thinks, a little, so that it ends; and one has its home anew each time.
    let homes = json!({"kind": "tpcc", "warehouses": 3, "seed": 5, "home": "random",
                       "keying_multiplier": 0.001, "think_multiplier": 0.001});
    assert_same_load(&homes, &json!({}), &[3]);
}

#[test]
fn parts_are_shared_out_each() {
    let parts = json!([{"name": "a", "database": "a"}, {"name": "b", "database": "b"}]);
    let change = json!({"parts": parts, "terminals": 9, "requests_max": 6});
    assert_same_load(&json!({"kind": "tpcb", "scale": 2, "seed": 3}), &change, &[2, 4]);
}

/// The audit of all requests is made from all hosts' counts; a band of a part is another one.
#[test]
fn the_audit_is_that_of_all_requests() {
    let tpcc = json!({"kind": "tpcc", "warehouses": 4, "seed": 11});
    let change = json!({"requests_max": 40});
    let (whole, parts) = (drive(&tpcc, &change, 1), drive(&tpcc, &change, 3));
    let all = merged(&tpcc, &parts);
    let given = |one: &Value| {
        let lines = one["audit"].as_array().unwrap().iter();
        // What the last request of all does is in no window: it ends it.
        lines.map(|line| (line["name"].clone(), line["unit"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(given(&all), given(&whole[0]));
    let n = |one: &Value| one["audit"][0]["n"].as_u64().unwrap();
    assert!(n(&all).abs_diff(n(&whole[0])) <= 2 * 3, "{} {}", n(&all), n(&whole[0]));
    assert!(n(&parts[0]) < n(&all) / 2);
    // So are times by second: each is the sum of what the hosts counted in it.
    let counted = |one: &Value, column: usize, second: usize| {
        one["seconds"]["times"]["counts"][column][second].as_u64().unwrap_or(0)
    };
    for (column, second) in (0..COLUMNS).flat_map(|column| (0..3).map(move |s| (column, s))) {
        let sum: u64 = parts.iter().map(|part| counted(part, column, second)).sum();
        assert_eq!(counted(&all, column, second), sum, "column {column}, second {second}");
    }
    let succeeded: u64 = sums(&all).iter().map(|(_, count)| count.as_u64().unwrap()).sum();
    let rolled_back: u64 =
        all["seconds"]["rolled_back"].as_array().unwrap().iter().filter_map(Value::as_u64).sum();
    let columns = all["seconds"]["times"]["counts"].as_array().unwrap();
    let rows = columns.iter().flat_map(|column| column.as_array().unwrap());
    assert_eq!(rows.filter_map(Value::as_u64).sum::<u64>(), succeeded + rolled_back);
}

/// Requests that were due in each second, up to the last one that had any: how long the seconds
/// after the window go on is up to the answers.
fn due_by_second(result: &Value) -> Vec<u64> {
    let seconds = result["seconds"]["due"].as_array().unwrap().iter();
    let mut due: Vec<u64> = seconds.map(|one| one.as_u64().unwrap()).collect();
    due.truncate(due.iter().rposition(|&one| one > 0).map_or(0, |last| last + 1));
    due
}

#[test]
fn an_open_load_is_due_at_the_same_times_on_any_number_of_hosts() {
    let tpcb = json!({"kind": "tpcb", "scale": 1, "seed": 3});
    for spacing in ["even", "poisson"] {
        let arrivals = json!({"kind": "open", "per_s": 900, "spacing": spacing});
        let mut change = json!({"arrivals": arrivals, "window_s": 0.5, "drain_s": 30.0});
        change["requests_max"] = Value::Null;
        let (whole, parts) = (drive(&tpcb, &change, 1), drive(&tpcb, &change, 3));
        let all = merged(&tpcb, &parts);
        assert_eq!(due_by_second(&all), due_by_second(&whole[0]), "{spacing}");
        assert_eq!(all["stream_digest"], whole[0]["stream_digest"], "{spacing}");
        assert!(parts.iter().all(|part| part["stream_digest"]["requests"].as_u64().unwrap() > 50));
    }
}

#[test]
fn hosts_begin_at_the_instant_that_they_are_told() {
    let tpcb = json!({"kind": "tpcb", "scale": 1});
    let change = json!({"window_s": 0.2, "requests_max": Value::Null});
    let server = null_server(&tpcb);
    let run = Run::start(spec(&server, &tpcb, &change, 1, 3)).unwrap();
    until(|| run.progress().phase == Phase::Ready);
    assert_eq!(run.progress().connected, 5, "its own connections");
    let begin = Instant { steady_ns: steady_ns() + SECOND_NS / 5, unix_ns: 77 * SECOND_NS };
    run.begin(begin);
    run.begin(Instant { steady_ns: 1, unix_ns: 1 }); // what was told first holds
    let result: RunResult = run.wait(PATIENCE).unwrap().unwrap();
    assert!(steady_ns() > begin.steady_ns + SECOND_NS / 5);
    assert_eq!(result.started_steady_ns, begin.steady_ns);
    assert_eq!(result.started_unix_ns, begin.unix_ns, "the calendar is that of who told it");
    assert_eq!(result.window_unix_ns, [77 * SECOND_NS, 77 * SECOND_NS + SECOND_NS / 5]);
    assert!(result.kinds[0].run.succeeded > 0);
}

#[test]
fn a_window_opens_and_ends_at_instants_that_are_told() {
    let tpcb = json!({"kind": "tpcb", "scale": 1});
    let change = json!({"warmup_s": 3600.0, "window_s": 3600.0, "requests_max": Value::Null});
    let server = null_server(&tpcb);
    let run = Run::start(spec(&server, &tpcb, &change, 0, 2)).unwrap();
    let start_ns = steady_ns() + SECOND_NS / 10;
    run.begin(Instant { steady_ns: start_ns, unix_ns: 0 });
    until(|| run.progress().phase == Phase::Warmup);
    run.open_at(start_ns + SECOND_NS / 2);
    run.stop_at(start_ns + SECOND_NS);
    let result = run.wait(PATIENCE).unwrap().unwrap();
    assert_eq!(result.outcome, RunOutcome::Stopped);
    let told = [SECOND_NS / 2, SECOND_NS];
    assert_eq!(result.window_unix_ns, told);
}

#[test]
fn a_host_that_is_stopped_before_it_begins_says_so() {
    let tpcb = json!({"kind": "tpcb", "scale": 1});
    let server = null_server(&tpcb);
    for begins in [false, true] {
        let run = Run::start(spec(&server, &tpcb, &json!({}), 0, 2)).unwrap();
        until(|| run.progress().phase == Phase::Ready);
        if begins {
            run.begin(Instant { steady_ns: steady_ns() + 600 * SECOND_NS, unix_ns: 0 });
        }
        run.stop();
        let error = run.wait(PATIENCE).unwrap().unwrap_err();
        assert!(error.fact.contains("stopped before it began"), "{}", error.fact);
    }
}

#[test]
fn results_that_are_not_of_one_load_are_refused() {
    let tpcb = json!({"kind": "tpcb", "scale": 1});
    let change = json!({"requests_max": 3});
    let mut parts = drive(&tpcb, &change, 2);
    let refused = |parts: &[Value]| {
        let texts: Vec<String> = parts.iter().map(Value::to_string).collect();
        merge(&tpcb, &texts).unwrap_err().fact
    };
    assert!(refused(&[]).contains("no results"));
    parts[1]["started_unix_ns"] = json!(5);
    assert!(refused(&parts).contains("begin at 1000000000 and 5 ns"), "{}", refused(&parts));
    parts[1]["kinds"][0]["kind"] = json!("other");
    assert!(refused(&parts).contains("of different loads"));
    assert!(refused(&drive(&tpcb, &change, 1)).contains("has no tally"));
}
