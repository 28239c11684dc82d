//! The loader against a scripted server: what it sends in which order, and what it says when the
//! server, the database or the user does not want it.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod again;
mod shared;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use drive::error::{ErrorKind, RunError};
use load::{Load, LoadReport, LoadSpec, Phase};
use serde_json::{Value, json};
use sim::{Call, Listener, Scripted, Step};

/// Longer than any load here takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);
/// What who asks for a load says of the tables that it leaves behind.
const REMAINS: &str = "The tables remain, incomplete.";

/// A load of one warehouse by two sessions, with these keys besides.
fn load_with(scripted: &Scripted, more: &Value) -> (Listener, Load) {
    let listener = Listener::start(scripted.clone()).unwrap();
    let mut spec = json!({
        "version": 1,
        "workload": {"kind": "tpcc", "warehouses": 1, "seed": 3, "foreign_keys": true},
        "connection": {"host": listener.host(), "port": listener.port(), "user": "u",
                       "database": "shop"},
        "connections": 2,
        "loaded_at_unix_s": 1_700_000_000,
        "remains": REMAINS,
    });
    for (key, value) in more.as_object().unwrap() {
        spec[key] = value.clone();
    }
    let load = Load::start(LoadSpec::parse(&spec.to_string()).unwrap()).unwrap();
    (listener, load)
}

fn load(scripted: &Scripted, drop_ours: bool) -> (Listener, Load) {
    load_with(scripted, &json!({"drop_ours": drop_ours}))
}

fn result(load: &Load) -> Result<LoadReport, RunError> {
    load.wait(PATIENCE).expect("an end")
}

fn row(values: &[&str]) -> Step {
    Step::Row(values.iter().map(|value| Some(value.as_bytes().to_vec())).collect())
}

/// Rows of binary COPY data; panics if it is none.
fn rows(data: &[u8]) -> u64 {
    let mut rest = data.strip_prefix(b"PGCOPY\n\xff\r\n\0").unwrap();
    rest = &rest[8..];
    let mut count = 0;
    loop {
        let (fields, tail) = rest.split_first_chunk::<2>().unwrap();
        rest = tail;
        if *fields == [0xff, 0xff] {
            assert!(rest.is_empty(), "data after the end of COPY");
            return count;
        }
        for _ in 0..u16::from_be_bytes(*fields) {
            let (length, tail) = rest.split_first_chunk::<4>().unwrap();
            let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
            rest = &tail[length..];
        }
        count += 1;
    }
}

/// A server that accepts everything and counts rows as a server does.
fn obliging(call: &Call) -> Vec<Step> {
    if let [Some(data)] = call.params.as_slice() {
        return vec![Step::Complete(format!("COPY {}", rows(data)))];
    }
    if call.sql.contains("FROM pg_settings WHERE name IN") {
        return vec![
            row(&["server_version_num", "180006"]),
            row(&["wal_level", "replica"]),
            row(&["maintenance_work_mem", "65536"]),
        ];
    }
    if call.sql.starts_with("SELECT current_database()") {
        return vec![row(&["shop", "public"])];
    }
    if call.sql.starts_with("SELECT sum(pg_total") {
        return vec![row(&["123456"])];
    }
    Vec::new()
}

#[test]
fn a_load_sends_every_row_once_and_records_itself_last() {
    let counts = Arc::new(Mutex::new(BTreeMap::<String, u64>::new()));
    let seen = Arc::clone(&counts);
    let scripted = Scripted::new(move |call: &Call| {
        if let [Some(data)] = call.params.as_slice() {
            let table = call.sql.split_whitespace().nth(1).unwrap().to_owned();
            *seen.lock().unwrap().entry(table).or_default() += rows(data);
        }
        obliging(call)
    });
    let (_listener, load) = load(&scripted, false);
    let report = result(&load).unwrap();
    assert_eq!(load.progress().phase, Phase::Done);

    let counts = counts.lock().unwrap();
    for table in &report.tables {
        assert_eq!(counts[&table.name], table.rows, "{}", table.name);
        assert!(table.bytes > 0);
    }
    assert_eq!((counts["stock"], counts["item"], counts["new_order"]), (100_000, 100_000, 9_000));
    assert_eq!(report.rows, counts.values().sum::<u64>());
    assert_eq!((report.disk_bytes, report.loaded_at_unix_s), (123_456, 1_700_000_000));
    let names: Vec<Phase> = report.phases.iter().map(|phase| phase.name).collect();
    let order = [
        Phase::Prepare,
        Phase::Copy,
        Phase::Index,
        Phase::Vacuum,
        Phase::ForeignKeys,
        Phase::Record,
    ];
    assert_eq!(names, order);
    assert!(report.choices.iter().any(|one| one.value.contains("one COPY FREEZE for each table")));
    in_order(&sent(&scripted));
}

/// All that was sent, in order.
fn sent(scripted: &Scripted) -> Vec<String> {
    scripted.log().calls().iter().map(|call| call.sql.clone()).collect()
}

/// What must come first does.
fn in_order(calls: &[String]) {
    let at = |part: &str| calls.iter().position(|sql| sql.contains(part)).expect(part);
    let last = |part: &str| calls.iter().rposition(|sql| sql.contains(part)).expect(part);
    assert!(at("CREATE TABLE stock") < at("COPY "));
    assert!(calls[at("CREATE TABLE stock")].contains("autovacuum_enabled = off"));
    assert!(calls[at("COPY stock")].ends_with("FROM STDIN (FORMAT binary, FREEZE)"));
    assert!(at("BEGIN; TRUNCATE stock") < at("COPY stock"));
    assert!(
        at("COPY stock") < at("INSERT INTO pgdyno_load_progress VALUES ('copy stock'); COMMIT")
    );
    assert!(last("COPY stock") < at("CREATE UNIQUE INDEX stock_pkey"));
    assert!(last("INDEX stock_pkey ON") < at("ADD CONSTRAINT stock_pkey PRIMARY KEY USING INDEX"));
    let vacuum = "VACUUM (FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0) stock";
    assert!(at("ADD CONSTRAINT stock_pkey PRIMARY KEY USING INDEX") < at(vacuum));
    assert!(last("VACUUM") < at("ADD FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id) NOT VALID"));
    assert!(at("NOT VALID") < at("ALTER TABLE stock VALIDATE CONSTRAINT"));
    let record = &calls[at("RESET (autovacuum_enabled)")];
    for part in ["('workload', 'tpcc')", "('warehouses', '1')", "('seed', '3')", "('c_last', '"] {
        assert!(record.contains(part), "{part} is not in {record}");
    }
    assert!(record.contains("DROP TABLE pgdyno_load_progress"));
    assert!(last("VALIDATE") < at("RESET (autovacuum_enabled)"));
}

type Pairs = &'static [(&'static str, &'static str)];

/// What a database holds when a load comes.
#[derive(Clone, Copy, Default)]
struct Holding {
    /// What has a name that the load needs, in words, and its OID.
    names: Pairs,
    /// OIDs and names of tables that the record of an earlier load has, and that are still there.
    made: Pairs,
    /// What others put upon those.
    added: &'static [&'static str],
    /// Rows of `pgdyno_load`.
    load: Pairs,
    /// Its comment.
    comment: &'static str,
}

const TABLES: Holding = Holding {
    names: &[("table public.orders", "1"), ("table public.pgdyno_load", "2")],
    made: &[("1", "orders"), ("2", "pgdyno_load")],
    added: &[],
    load: &[("workload", "tpcc")],
    comment: "",
};

/// A database that has such tables; it refuses to drop them.
fn occupied(holding: Holding) -> Scripted {
    Scripted::new(move |call: &Call| {
        let sql = call.sql.as_str();
        if sql.starts_with("SELECT format(") {
            return holding.names.iter().map(|(what, oid)| row(&[what, oid])).collect();
        }
        if sql.starts_with("SELECT to_regclass('pgdyno_load_made') IS NOT NULL") {
            return vec![row(&[if holding.made.is_empty() { "f" } else { "t" }])];
        }
        if sql.starts_with("SELECT oid, name, relkind") {
            return holding.made.iter().map(|(oid, name)| row(&[oid, name, "r", "f"])).collect();
        }
        if sql.starts_with("WITH RECURSIVE ours") {
            return holding.added.iter().map(|what| row(&[what])).collect();
        }
        if sql.starts_with("SELECT key, value") {
            return holding.load.iter().map(|(key, value)| row(&[key, value])).collect();
        }
        if sql.contains("DROP") {
            return vec![Step::error("2BP01", "other objects depend on it")];
        }
        if sql.contains("obj_description") {
            return vec![row(&[holding.comment])];
        }
        let looks = ["SELECT name", "SELECT set_config", "SELECT current_database()"];
        let harmless = looks.iter().any(|look| sql.starts_with(look));
        assert!(harmless || sql.starts_with("BEGIN; SET LOCAL lock_timeout"), "not that: {sql}");
        obliging(call)
    })
}

fn refused(holding: Holding, drop_ours: bool) -> (RunError, Vec<String>) {
    let scripted = occupied(holding);
    let (_listener, load) = load(&scripted, drop_ours);
    (result(&load).unwrap_err(), sent(&scripted))
}

#[test]
fn a_database_with_a_load_is_refused_and_may_be_dropped() {
    let (error, _) = refused(TABLES, false);
    assert_eq!(error.kind, ErrorKind::Spec);
    assert_eq!(error.fact, "database shop has a complete load in schema public");
    let hint = error.hint.unwrap();
    assert!(hint.contains("drop it, and nothing else, with --drop-ours"), "{hint}");
    assert!(!hint.contains("remain"), "{hint}");
}

#[test]
fn what_the_record_does_not_name_is_never_dropped_nor_is_it_advised() {
    let users = Holding { made: &[], load: &[], ..TABLES };
    // A load of ours beside a user's table, and a table in the place of one of ours.
    let beside = Holding {
        names: &[("table public.orders", "1"), ("view public.stock", "7")],
        made: &[("1", "orders"), ("2", "pgdyno_load")],
        ..TABLES
    };
    let replaced = Holding { made: &[("9", "stock"), ("2", "pgdyno_load")], ..TABLES };
    for (holding, named) in [
        (users, "table public.orders, table public.pgdyno_load"),
        (beside, "view public.stock"),
        (replaced, "table public.orders"),
    ] {
        for drop_ours in [false, true] {
            let (error, sent) = refused(holding, drop_ours);
            assert_eq!(
                error.fact,
                format!(
                    "database shop has {named}, which pgdyno did not make; this load would use \
                     such names"
                )
            );
            assert!(!error.hint.unwrap().contains("--drop-ours"));
            assert!(!sent.iter().any(|sql| sql.contains("DROP")), "{sent:?}");
        }
    }
}

#[test]
fn a_load_without_a_record_is_not_dropped_and_it_is_said_what_to_drop() {
    let older = Holding { made: &[], comment: "tables of a pgdyno load of tpcc", ..TABLES };
    let (error, sent) = refused(older, true);
    assert!(error.fact.contains("has a load that does not say what it made"), "{}", error.fact);
    let hint = error.hint.unwrap();
    assert!(hint.contains("yourself: table public.orders, table public.pgdyno_load"), "{hint}");
    assert!(!sent.iter().any(|sql| sql.contains("DROP")), "{sent:?}");
}

#[test]
fn what_others_added_to_our_tables_is_not_dropped_with_them() {
    let added = Holding { added: &["index mine", "trigger audit on table orders"], ..TABLES };
    let (error, sent) = refused(added, true);
    assert_eq!(
        error.fact,
        "in database shop others added to tables of the load: index mine, trigger audit on table \
         orders"
    );
    assert!(!sent.iter().any(|sql| sql.contains("DROP")), "{sent:?}");
}

#[test]
fn tables_that_are_ours_are_dropped_all_at_once_and_without_cascade() {
    for made in [
        Holding { load: &[], comment: "tables of a pgdyno load of tpcc", ..TABLES },
        Holding { load: &[("workload", "pgbench")], ..TABLES },
        TABLES,
    ] {
        let (error, sent) = refused(made, true);
        assert!(error.fact.contains("others lean on tables of the earlier load"), "{}", error.fact);
        let last = sent.last().unwrap();
        let lock = "LOCK TABLE \"public\".\"orders\", \"public\".\"pgdyno_load\" IN ACCESS";
        let drop = "; DROP TABLE \"public\".\"orders\", \"public\".\"pgdyno_load\"; CREATE";
        let at = |part: &str| last.find(part).expect(part);
        assert!(at("BEGIN; ") < at(lock) && at(lock) < at("changed while they were looked at"));
        assert!(at("changed while they were looked at") < at(drop) && last.ends_with("COMMIT"));
        assert!(!last.contains("CASCADE") && !error.hint.unwrap().contains("CASCADE"));
    }
}

#[test]
fn a_failed_copy_names_the_table_and_what_is_left() {
    let scripted = Scripted::new(|call: &Call| {
        if call.sql.starts_with("COPY stock") {
            return vec![Step::error("53100", "could not extend file: No space left on device")];
        }
        obliging(call)
    });
    let (_listener, load) = load(&scripted, false);
    let error = result(&load).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Target);
    assert!(error.fact.contains("copy stock: ERROR 53100"), "{}", error.fact);
    assert!(error.fact.contains("No space left on device"));
    assert_eq!(error.hint.as_deref(), Some(REMAINS));
    let log = scripted.log().calls();
    assert!(!log.iter().any(|call| call.sql.contains("INDEX stock_pkey")), "it went on");
}

#[test]
fn a_server_that_counts_otherwise_is_not_believed() {
    let scripted = Scripted::new(|call: &Call| {
        if call.sql.starts_with("COPY stock") {
            return vec![Step::Complete("COPY 7".into())];
        }
        obliging(call)
    });
    let (_listener, load) = load(&scripted, false);
    let error = result(&load).unwrap_err();
    assert!(error.fact.contains("copy stock: server took 7 of 100000 rows"), "{}", error.fact);
}

#[test]
fn a_server_that_dies_is_an_error_and_not_a_hang() {
    let scripted = Scripted::new(|call: &Call| {
        if call.sql.starts_with("COPY stock") {
            return vec![Step::fatal("57P01", "terminating connection")];
        }
        obliging(call)
    });
    let (_listener, load) = load(&scripted, false);
    let error = result(&load).unwrap_err();
    assert!(error.fact.contains("copy stock: FATAL 57P01"), "{}", error.fact);
}

#[test]
fn a_stopped_load_ends_and_says_what_it_leaves() {
    let (told, begun) = std::sync::mpsc::channel();
    let (stopped, told_of_stop) = std::sync::mpsc::channel::<()>();
    let told_of_stop = std::sync::Mutex::new(told_of_stop);
    let scripted = Scripted::new(move |call: &Call| {
        if call.sql.starts_with("COPY stock") {
            let _nobody_waits = told.send(());
            // An answer that came before the stop would be an error of its own: 0 rows.
            let _nobody_stops = told_of_stop.lock().unwrap().recv_timeout(PATIENCE);
            return vec![Step::Wait(Duration::from_secs(1)), Step::Complete("COPY 0".into())];
        }
        obliging(call)
    });
    let (_listener, load) = load(&scripted, false);
    begun.recv_timeout(PATIENCE).unwrap();
    load.stop();
    drop(stopped);
    let error = result(&load).unwrap_err();
    assert_eq!(error.kind, ErrorKind::Drive);
    assert!(error.fact.starts_with("the load was stopped in phase copy, after "), "{}", error.fact);
    assert_eq!(error.hint.as_deref(), Some(REMAINS));
    assert_eq!(load.progress().phase, Phase::Done);
}
