//! Loads that meet an earlier load: going on, adding, refusing; and the estimate, which changes
//! nothing.

use std::collections::BTreeMap;

use drive::error::ErrorKind;
use load::{LoadSpec, estimate};
use serde_json::{Value, json};
use sim::{Call, Listener, Scripted, Step};

use super::{load_with, obliging, result, row, rows, sent};

const TABLES: [&str; 9] = [
    "customer",
    "district",
    "history",
    "item",
    "new_order",
    "order_line",
    "orders",
    "stock",
    "warehouse",
];

const INDEXES: [&str; 10] = [
    "customer_by_name",
    "customer_pkey",
    "district_pkey",
    "item_pkey",
    "new_order_pkey",
    "order_line_pkey",
    "orders_by_customer",
    "orders_pkey",
    "stock_pkey",
    "warehouse_pkey",
];

/// What the record of a load of one warehouse says; these tests ask for the same.
pub(super) fn record(change: &[(&str, &str)]) -> BTreeMap<String, String> {
    let same = [
        ("version", "2"),
        ("schema", "spec"),
        ("warehouses", "1"),
        ("seed", "3"),
        ("foreign_keys", "true"),
        ("partitions", "null"),
        ("order", "warehouse"),
    ];
    let all = same.iter().chain(change);
    all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// A database with a load in it: `record` is what `pgdyno_load` says, `ledger` the steps done.
pub(super) fn holding(
    record: &BTreeMap<String, String>,
    ledger: Option<(Value, Vec<String>)>,
    untouched: bool,
) -> Scripted {
    let record = record.clone();
    Scripted::new(move |call: &Call| {
        let sql = call.sql.as_str();
        let ours = ledger.iter().map(|_| "pgdyno_load_progress");
        let ours = TABLES.into_iter().chain(ours).chain(["pgdyno_load", "pgdyno_load_made"]);
        let all: Vec<String> = ours.chain(INDEXES).map(str::to_owned).collect();
        let oid = |name: &String| format!("4{}", name.len());
        if sql.starts_with("SELECT format(") {
            return all.iter().map(|one| row(&[one, &oid(one)])).collect();
        }
        if sql.starts_with("SELECT to_regclass('pgdyno_load_made') IS NOT NULL") {
            return vec![row(&["t"])];
        }
        if sql.starts_with("SELECT oid, name, relkind") {
            return all.iter().map(|one| row(&[&oid(one), one, "r", "f"])).collect();
        }
        if sql.starts_with("SELECT key, value") {
            return record.iter().map(|(key, value)| row(&[key, value])).collect();
        }
        if sql.starts_with("SELECT obj_description") {
            return vec![row(&["tables of a pgdyno load of tpcc"])];
        }
        if sql.starts_with("SELECT step, detail") {
            let (begun, done) = ledger.clone().unwrap();
            let note = |step: &String| Step::Row(vec![Some(step.clone().into_bytes()), None]);
            let first = row(&["begun", &begun.to_string()]);
            return [first].into_iter().chain(done.iter().map(note)).collect();
        }
        if sql.starts_with("SELECT (SELECT sum(d_next_o_id)") {
            return vec![row(&[if untouched { "t" } else { "f" }])];
        }
        obliging(call)
    })
}

pub(super) fn begun(record: &BTreeMap<String, String>) -> Value {
    json!({"record": record, "loaded_at_unix_s": 1_600_000_000, "copies": "tables",
           "from_units": 0, "builds": true})
}

/// Everything but the copies of these tables, their indexes and what follows.
fn done_but(left: &[&str]) -> Vec<String> {
    let done = TABLES.iter().filter(|table| !left.contains(table));
    done.map(|table| format!("copy {table}")).collect()
}

/// Rows that were sent to each table.
pub(super) fn copied(scripted: &Scripted) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for call in scripted.log().calls() {
        if let [Some(data)] = call.params.as_slice() {
            let table = call.sql.split_whitespace().nth(1).unwrap().to_owned();
            *counts.entry(table).or_default() += rows(data);
        }
    }
    counts
}

#[test]
fn a_load_that_goes_on_does_what_is_left_and_nothing_twice() {
    let ledger = (begun(&record(&[])), done_but(&["item", "district"]));
    let scripted = holding(&BTreeMap::new(), Some(ledger), true);
    let (_listener, load) = load_with(&scripted, &json!({"resume": true}));
    let report = result(&load).unwrap();
    let counts = copied(&scripted);
    assert_eq!(counts, [("district".into(), 10), ("item".into(), 100_000)].into());
    assert_eq!((report.rows, report.steps_done_before), (100_010, 7));
    assert_eq!(report.loaded_at_unix_s, 1_600_000_000, "rows carry the time of the first attempt");
    let sent = sent(&scripted);
    assert!(!sent.iter().any(|sql| sql.contains("CREATE TABLE")), "the tables are there");
    assert!(sent.iter().any(|sql| sql.contains("CREATE UNIQUE INDEX stock_pkey")));
    assert!(sent.iter().any(|sql| sql.contains("('loaded_at_unix_s', '1600000000')")));
}

#[test]
fn only_the_same_load_goes_on() {
    let refused = |scripted: &Scripted, more: &Value| {
        let (_listener, load) = load_with(scripted, more);
        let error = result(&load).unwrap_err();
        assert_eq!(error.kind, ErrorKind::Spec);
        assert!(copied(scripted).is_empty(), "{}", error.fact);
        (error.fact, error.hint.unwrap())
    };
    let resume = json!({"resume": true});
    let other = (begun(&record(&[("seed", "4")])), Vec::new());
    let (fact, _) = refused(&holding(&BTreeMap::new(), Some(other), true), &resume);
    assert_eq!(fact, "the load in database shop has seed 4, asked is 3");

    let complete = record(&[("workload", "tpcc")]);
    let (fact, _) = refused(&holding(&complete, None, true), &resume);
    assert_eq!(fact, "the load in database shop is complete, there is nothing to resume");
    let (fact, _) = refused(&Scripted::new(obliging), &resume);
    assert_eq!(fact, "database shop has no load that could go on");

    let half = (begun(&record(&[])), done_but(&["item"]));
    let (fact, hint) = refused(&holding(&BTreeMap::new(), Some(half), true), &json!({}));
    assert_eq!(fact, "database shop has a load that did not end, 8 steps of it are done");
    assert_eq!(hint, "Go on with --resume, or begin again with --drop-ours.");
}

#[test]
fn warehouses_are_added_without_those_that_are_there() {
    let found = record(&[("workload", "tpcc"), ("loaded_at_unix_s", "1600000000")]);
    let scripted = holding(&found, None, true);
    let workload = json!({"kind": "tpcc", "warehouses": 2, "seed": 3, "foreign_keys": true});
    let (_listener, load) = load_with(&scripted, &json!({"top_up": true, "workload": workload}));
    let report = result(&load).unwrap();
    let counts = copied(&scripted);
    assert!(!counts.contains_key("item"), "items are the same for all warehouses");
    assert_eq!((counts["stock"], counts["warehouse"], counts["new_order"]), (100_000, 1, 9_000));
    assert_eq!((report.units_before, report.loaded_at_unix_s), (1, 1_600_000_000));
    let sent = sent(&scripted);
    let at = |part: &str| sent.iter().position(|sql| sql.contains(part)).expect(part);
    let opened = &sent[at("DELETE FROM pgdyno_load")];
    for part in [
        "contype = 'f'",
        "contype = 'p'",
        "m.id = pg_constraint.oid",
        "DROP INDEX",
        "CREATE TABLE pgdyno_load_progress",
        "SELECT 'constraint', k.oid",
    ] {
        assert!(opened.contains(part), "{part} is not in {opened}");
    }
    assert!(at("DELETE FROM pgdyno_load") < at("COPY stock"));
    assert!(at("COPY stock") < at("CREATE UNIQUE INDEX stock_pkey"));
    assert!(sent.iter().any(|sql| sql.contains("('warehouses', '2')")));
}

#[test]
fn a_database_that_was_worked_on_is_not_added_to() {
    let found = record(&[("workload", "tpcc")]);
    let workload = json!({"kind": "tpcc", "warehouses": 2, "seed": 3, "foreign_keys": true});
    let scripted = holding(&found, None, false);
    let (_listener, load) = load_with(&scripted, &json!({"top_up": true, "workload": workload}));
    let error = result(&load).unwrap_err();
    assert_eq!(error.fact, "transactions changed database shop since it was loaded");

    let scripted = holding(&found, None, true);
    let (_listener, load) = load_with(&scripted, &json!({"top_up": true}));
    let error = result(&load).unwrap_err();
    assert_eq!(error.fact, "warehouses is 1, the database has 1 already");
    assert!(copied(&scripted).is_empty());
}

#[test]
fn two_loads_of_one_database_do_not_meet() {
    let scripted = Scripted::new(|call: &Call| {
        if call.sql.contains("pg_advisory_xact_lock") {
            return vec![Step::error("55P03", "canceling statement due to lock timeout")];
        }
        obliging(call)
    });
    let (_listener, load) = load_with(&scripted, &json!({}));
    let error = result(&load).unwrap_err();
    assert_eq!(error.fact, "another load of this database is under way");
    assert!(!sent(&scripted).iter().any(|sql| sql.contains("CREATE TABLE")));
}

#[test]
fn an_estimate_changes_nothing() {
    let scripted = Scripted::new(obliging);
    let listener = Listener::start(scripted.clone()).unwrap();
    let spec = json!({
        "version": 1, "workload": {"kind": "tpcc", "warehouses": 3, "seed": 3},
        "connection": {"host": listener.host(), "port": listener.port(), "user": "u",
                       "database": "shop"},
        "connections": 2, "loaded_at_unix_s": 1_700_000_000,
    });
    let told = estimate(LoadSpec::parse(&spec.to_string()).unwrap()).unwrap();
    assert_eq!((told.unit, told.units, told.units_before), ("warehouses", 3, 0));
    assert!((320_000_000..340_000_000).contains(&told.disk_bytes), "{}", told.disk_bytes);
    assert_eq!(told.wal_bytes, told.disk_bytes, "wal_level is replica");
    assert!(told.seconds.unwrap() > 0.0);
    let changes: Vec<String> = sent(&scripted)
        .into_iter()
        .filter(|sql| !sql.starts_with("SELECT") && !sql.contains("lock_timeout"))
        .collect();
    assert_eq!(changes.len(), 8, "{changes:?}");
    assert!(changes[0].starts_with("BEGIN; CREATE TEMPORARY TABLE"), "{changes:?}");
    assert!(changes[1].starts_with("COPY pg_temp."), "{changes:?}");
    assert_eq!(changes[7], "ROLLBACK");
}
