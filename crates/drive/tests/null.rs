//! The driver against a null server: every transaction goes through all its statements.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::{sync::Arc, time::Duration};

use drive::{run::Run, spec::Spec};
use serde_json::{Value, json};
use sim::null::{Known, NullServer, NullSpec, Respond};
use workload::{answers::Answers, plausible::Bound};

const PATIENCE: Duration = Duration::from_secs(60);

fn known(workload: &Value) -> Known {
    let answers = Answers::of_spec(workload).unwrap();
    Known::new(move |sql| {
        let plausible = answers.find(sql)?;
        let respond: Respond = Arc::new(move |params, out| plausible.answer(Bound(params), out));
        Some(respond)
    })
}

/// A window against a null server over TCP: the result, the server's executions and batches.
///
/// On a busy machine a window may end before what is rarest had a turn: a longer one follows.
fn drive(workload: &Value) -> (Value, u64, u64) {
    let windows_s = [0.3, 3.0, 30.0];
    let mut driven = windows_s.iter().map(|window_s| drive_for(*window_s, workload));
    driven.find(|(result, ..)| had_all(result)).expect("not everything had a turn in 30 s")
}

/// Whether each kind ended somehow, and a New-Order in the roll-back that one of a hundred meets.
fn had_all(result: &Value) -> bool {
    result["kinds"].as_array().unwrap().iter().all(|kind| {
        let has = |end: &str| kind["run"][end].as_u64().unwrap() > 0;
        ["succeeded", "rolled_back", "failed"].into_iter().any(has)
            && (kind["kind"] != "new_order" || has("rolled_back"))
    })
}

fn drive_for(window_s: f64, workload: &Value) -> (Value, u64, u64) {
    let spec = json!({"host": "127.0.0.1", "port": 0, "threads": 2, "workload": workload});
    let server = NullServer::start(&NullSpec::parse(&spec.to_string()).unwrap(), &known(workload));
    let server = server.unwrap();
    let spec = json!({
        "version": 1, "workload": workload, "allow_debug": true,
        "connection": {"host": "127.0.0.1", "port": server.status().port, "user": "u",
                       "database": "d"},
        "connections": 3, "terminals": 3, "threads": 1, "warmup_s": 0.0, "window_s": window_s,
    });
    let run = Run::start(Spec::parse(&spec.to_string()).unwrap()).unwrap();
    let result = run.wait(PATIENCE).unwrap().unwrap();
    let status = server.status();
    // Face `procedure` has a session of its own that sets up.
    assert!((3..=4).contains(&status.connections), "{}", status.connections);
    (serde_json::to_value(result).unwrap(), status.executions, status.batches)
}

fn assert_all_succeed(result: &Value) {
    assert_eq!(result["errors"], json!([]), "{}", result["errors"]);
    for kind in result["kinds"].as_array().unwrap() {
        assert!(kind["run"]["succeeded"].as_u64().unwrap() > 0, "{kind}");
    }
}

fn tpcc(change: &Value) -> Value {
    // Every tenth request is one of the rarer kinds, so that a short window has them all.
    let mix = json!({"new_order": 6, "payment": 1, "order_status": 1, "delivery": 1,
                     "stock_level": 1});
    let mut spec = json!({"kind": "tpcc", "warehouses": 3, "mix": mix});
    for (key, value) in change.as_object().unwrap() {
        spec[key] = value.clone();
    }
    spec
}

/// Batches beyond those of transactions: each session prepares once.
const PREPARATIONS: u64 = 3;

#[test]
fn face_statement_sends_one_statement_in_each_round_trip() {
    let (result, executions, batches) = drive(&tpcc(&json!({})));
    assert_all_succeed(&result);
    assert!(result["kinds"][0]["run"]["rolled_back"].as_u64().unwrap() > 0);
    assert_eq!(executions + PREPARATIONS, batches);
}

#[test]
fn face_pipeline_sends_several() {
    let (result, executions, batches) = drive(&tpcc(&json!({"face": "pipeline"})));
    assert_all_succeed(&result);
    assert!(result["kinds"][0]["run"]["rolled_back"].as_u64().unwrap() > 0);
    assert!(executions > 3 * batches, "{executions} in {batches}");
}

#[test]
fn face_procedure_sends_one_call() {
    let (result, executions, batches) = drive(&tpcc(&json!({"face": "procedure"})));
    assert_all_succeed(&result);
    let kinds = result["kinds"].as_array().unwrap();
    let ended =
        |name: &str| kinds.iter().map(|kind| kind["run"][name].as_u64().unwrap()).sum::<u64>();
    assert!(ended("rolled_back") > 0);
    // Of the unfinished, some were not even sent.
    let done = ended("succeeded") + ended("rolled_back");
    assert!((done..=done + ended("unfinished")).contains(&executions), "{executions}");
    assert_eq!(executions + PREPARATIONS, batches);
}

#[test]
fn the_rules_of_benchmarksql_have_answers_too() {
    let rules = json!({"schema": "bmsql", "rules": "benchmarksql-5", "delivery": "inline"});
    let (result, ..) = drive(&tpcc(&rules));
    assert_all_succeed(&result);
}

#[test]
fn the_workloads_of_pgbench_have_answers() {
    for (kind, face) in [
        ("tpcb", "statement"),
        ("tpcb", "pipeline"),
        ("tpcb", "procedure"),
        ("simple-update", "pipeline"),
        ("select-only", "statement"),
    ] {
        let (result, ..) = drive(&json!({"kind": kind, "scale": 2, "face": face}));
        assert_all_succeed(&result);
    }
}
