//! What pgbench's built-in workloads send.

use serde_json::json;
use workload::{Outcome, Workload, pgbench::Pgbench};

use super::session::{Fake, Reply, perform};

fn workload(kind: &str, face: &str) -> Pgbench {
    let spec = json!({"kind": kind, "face": face, "scale": 2, "seed": 11});
    Pgbench::from_spec(&spec).unwrap()
}

fn row(balance: &'static str) -> Reply {
    Reply::Rows(vec![vec![Some(balance)]])
}

/// Four bytes, read as a balance.
const BALANCE: &str = "\0\0\u{1}\u{2}";

fn sent(kind: &str, face: &str, looks_at: usize, (terminal, number): (u32, u64)) -> Vec<String> {
    let mut replies = vec![Reply::Affected(1); looks_at];
    replies.push(row(BALANCE));
    let mut session = Fake { replies: replies.into(), ..Fake::default() };
    let outcome = perform(&workload(kind, face), &mut session, (terminal, number)).unwrap();
    assert_eq!(outcome, Outcome::Committed);
    session.sent
}

#[test]
fn statements_are_those_of_the_scripts() {
    let workload = workload("tpcb", "statement");
    let (request, _) = workload.request(0, 0);
    let (aid, bid, tid, delta) = (request.aid, request.bid, request.tid, request.delta);
    assert!((1..=200_000).contains(&aid) && (1..=2).contains(&bid));
    assert!((1..=20).contains(&tid) && (-5000..=5000).contains(&delta));
    let want = [
        "BEGIN".to_owned(),
        format!(
            "UPDATE pgbench_accounts SET abalance = abalance + {delta}::int WHERE aid = {aid}::int"
        ),
        format!("SELECT abalance FROM pgbench_accounts WHERE aid = {aid}::int"),
        format!(
            "UPDATE pgbench_tellers SET tbalance = tbalance + {delta}::int WHERE tid = {tid}::int"
        ),
        format!(
            "UPDATE pgbench_branches SET bbalance = bbalance + {delta}::int WHERE bid = {bid}::int"
        ),
        format!(
            "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES \
             ({tid}::int, {bid}::int, {aid}::int, {delta}::int, CURRENT_TIMESTAMP)"
        ),
        "END".to_owned(),
    ];
    let statement = sent("tpcb", "statement", 2, (0, 0));
    let trips: Vec<String> = want.iter().flat_map(|sql| [sql.clone(), String::new()]).collect();
    assert_eq!(statement, trips);
    let pipeline = sent("tpcb", "pipeline", 2, (0, 0));
    assert_eq!(pipeline[..7], want);
    assert_eq!(pipeline[7..], [""], "all in one round trip");
}

#[test]
fn the_other_kinds_leave_statements_out() {
    let simple = sent("simple-update", "pipeline", 2, (0, 0));
    assert_eq!(simple.len(), 6);
    assert!(simple[3].starts_with("INSERT INTO pgbench_history"));
    let select = sent("select-only", "statement", 0, (0, 0));
    assert_eq!(select.len(), 2);
    assert!(select[0].starts_with("SELECT abalance"));
}

#[test]
fn a_procedure_is_one_call_of_a_function_of_ours() {
    let call = sent("tpcb", "procedure", 0, (0, 0));
    assert_eq!(call.len(), 2);
    assert!(call[0].starts_with("SELECT pgdyno_tpcb("));
    let setup = workload("tpcb", "procedure").setup();
    assert_eq!(setup.len(), 5, "in a transaction, once nobody else's is in the way");
    let source = &setup[2];
    assert!(source.starts_with("CREATE OR REPLACE FUNCTION pgdyno_tpcb(arg_aid int,"));
    assert!(source.contains("SET abalance = abalance + arg_delta WHERE aid = arg_aid;"));
    assert!(source.contains("VALUES (arg_tid, arg_bid, arg_aid, arg_delta, CURRENT_TIMESTAMP)"));
    assert!(!source.contains("$1") && workload("tpcb", "pipeline").setup().is_empty());
}

#[test]
fn rows_that_are_missing_fail_the_transaction() {
    let mut session = Fake { replies: [Reply::Rows(vec![])].into(), ..Fake::default() };
    let error = perform(&workload("select-only", "statement"), &mut session, (0, 0)).unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("accounts_select found 0 rows for account "), "{text}");
    assert!(text.contains("another scale than 2"), "{text}");
}

#[test]
fn requests_follow_from_seed_terminal_and_number() {
    assert_eq!(sent("tpcb", "pipeline", 2, (3, 9)), sent("tpcb", "pipeline", 2, (3, 9)));
    assert_ne!(sent("tpcb", "pipeline", 2, (3, 9)), sent("tpcb", "pipeline", 2, (3, 10)));
    assert_ne!(sent("tpcb", "pipeline", 2, (3, 9)), sent("tpcb", "pipeline", 2, (4, 9)));
    let first = workload("tpcb", "statement").request(0, 0).0;
    assert_eq!(first, workload("tpcb", "procedure").request(0, 0).0, "whatever the face");
}
