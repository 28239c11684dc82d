//! Loads that several hosts do together: what each part sends, and that all parts are the whole.

use std::collections::BTreeMap;

use drive::error::ErrorKind;
use load::Phase;
use serde_json::{Value, json};
use sim::Scripted;

use super::{
    again::{begun, copied, holding, record},
    load_with, obliging, result, sent,
};

fn part_of(host: u32, hosts: u32) -> Value {
    json!({"part": {"copy": {"host": host, "hosts": hosts}}})
}

/// A database in which the head has begun a load whose tables are filled by many COPYs.
fn opened(done: Vec<String>) -> Scripted {
    let mut begun = begun(&record(&[]));
    begun["copies"] = json!("batches");
    holding(&BTreeMap::new(), Some((begun, done)), true)
}

#[test]
fn the_parts_of_any_number_of_hosts_are_the_rows_of_one() {
    let whole = Scripted::new(obliging);
    let (_listener, load) = load_with(&whole, &json!({}));
    result(&load).unwrap();
    for hosts in [1, 3, 7] {
        let mut all = BTreeMap::<String, u64>::new();
        for host in 0..hosts {
            let scripted = opened(Vec::new());
            let (_listener, load) = load_with(&scripted, &part_of(host, hosts));
            let report = result(&load).unwrap();
            let own = copied(&scripted);
            assert_eq!(report.rows, own.values().sum::<u64>());
            assert!(hosts > 3 || report.rows > 0, "host {host} of {hosts} has something to do");
            for (table, rows) in own {
                *all.entry(table).or_default() += rows;
            }
            for sql in sent(&scripted) {
                for other in ["CREATE", "VACUUM", "ALTER", "DROP", "pg_advisory_xact_lock"] {
                    assert!(!sql.contains(other), "{sql}");
                }
            }
        }
        assert_eq!(all, copied(&whole), "{hosts} hosts");
    }
}

#[test]
fn a_host_leaves_out_what_was_copied_before() {
    let done = "copy stock, batches 1 to 45 of 100".to_owned();
    let scripted = opened(vec![done]);
    let (_listener, load) = load_with(&scripted, &part_of(0, 1));
    result(&load).unwrap();
    assert_eq!(copied(&scripted)["stock"], 55_000);
}

#[test]
fn the_head_begins_without_a_row_and_reaches_without_a_change() {
    let scripted = Scripted::new(obliging);
    let (_listener, load) = load_with(&scripted, &json!({"part": "begin"}));
    let report = result(&load).unwrap();
    let names: Vec<Phase> = report.phases.iter().map(|phase| phase.name).collect();
    assert_eq!((report.rows, names), (0, vec![Phase::Prepare]));
    assert!(copied(&scripted).is_empty());
    let sent_now = sent(&scripted);
    let created = sent_now.iter().find(|sql| sql.contains("CREATE TABLE pgdyno_load_progress"));
    assert!(created.expect("a ledger").contains(r#""copies":"batches""#), "{created:?}");
    let why = report.choices.iter().find(|choice| choice.name == "copies").expect("a choice");
    assert_eq!(why.why, "each of the hosts has a part of every table");

    let scripted = Scripted::new(obliging);
    let (_listener, load) = load_with(&scripted, &json!({"part": "reach"}));
    result(&load).unwrap();
    let sent = sent(&scripted);
    assert!(sent.iter().all(|sql| sql.starts_with("SELECT")), "{sent:?}");
}

#[test]
fn a_host_joins_only_the_load_that_the_head_has_begun() {
    let (_listener, load) = load_with(&Scripted::new(obliging), &part_of(0, 2));
    let error = result(&load).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Spec);
    assert_eq!(error.fact, "database shop has no load that was begun");

    let mut other = begun(&record(&[("seed", "4")]));
    other["copies"] = json!("batches");
    let scripted = holding(&BTreeMap::new(), Some((other, Vec::new())), true);
    let (_listener, load) = load_with(&scripted, &part_of(0, 2));
    let error = result(&load).unwrap_err();
    assert_eq!(error.fact, "the load in database shop has seed 4, asked is 3");
    assert!(copied(&scripted).is_empty());
}
