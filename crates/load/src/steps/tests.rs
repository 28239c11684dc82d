//! The order of steps: what waits for what, on which version, for which tables.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wire::Timestamp;
use workload::catalogue;

use super::*;
use crate::pieces;

struct Case {
    dataset: Box<dyn Dataset>,
    begun: Begun,
    filled: Vec<Relation>,
    stored: Vec<Relation>,
    version: u32,
}

fn case(more: &Value, copies: Copies, version: u32) -> Case {
    let mut spec = json!({"kind": "tpcc", "warehouses": 3});
    for (key, value) in more.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    let dataset = catalogue::dataset(&spec, Timestamp(0)).expect("a specification");
    let stored = pieces::all(&*dataset, None);
    let record = BTreeMap::new();
    let begun = Begun { record, loaded_at_unix_s: 0, copies, from_units: 0, builds: true };
    Case { filled: stored.clone(), stored, begun, dataset, version }
}

impl Case {
    fn steps(&self) -> Vec<Step> {
        let terms = Terms {
            dataset: &*self.dataset,
            begun: &self.begun,
            filled: &self.filled,
            stored: &self.stored,
            version: self.version,
        };
        terms.steps()
    }
}

fn at(steps: &[Step], name: &str) -> usize {
    steps.iter().position(|step| step.name == name).expect(name)
}

/// Names of the steps that a step waits for.
fn after<'a>(steps: &'a [Step], name: &str) -> Vec<&'a str> {
    steps[at(steps, name)].after.iter().map(|&other| steps[other].name.as_str()).collect()
}

fn sql(steps: &[Step], name: &str) -> String {
    match &steps[at(steps, name)].action {
        Action::Sql { sql, .. } | Action::Copy { sql, .. } => sql.clone(),
    }
}

#[test]
fn every_batch_is_copied_by_one_step_and_names_are_unique() {
    for copies in [Copies::Tables, Copies::Batches] {
        for more in [json!({}), json!({"partitions": {"by": "range", "count": 2}})] {
            let case = case(&more, copies, 180_000);
            let steps = case.steps();
            let mut batches = BTreeMap::<usize, u32>::new();
            for step in &steps {
                if let Action::Copy { table, batches: range, .. } = &step.action {
                    *batches.entry(*table).or_default() += range.end - range.start;
                }
            }
            for (at, table) in case.dataset.tables().iter().enumerate() {
                assert_eq!(batches[&at], table.batches, "{}", table.name);
            }
            let rows: u64 = steps.iter().map(|step| step.rows(&*case.dataset)).sum();
            let all: u64 = case.dataset.tables().iter().map(|table| table.rows).sum();
            assert!(all - rows < 1000, "{rows} of {all}: shares are rounded down");
            let mut names: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), steps.len(), "the ledger tells steps apart by their names");
            let order = steps.iter().enumerate().all(|(at, one)| one.after.iter().all(|o| *o < at));
            assert!(order, "a step is listed after those that it waits for");
        }
    }
}

#[test]
fn a_whole_table_is_emptied_and_frozen_in_one_transaction() {
    let steps = case(&json!({}), Copies::Tables, 180_000).steps();
    let Action::Copy { before, sql, .. } = &steps[at(&steps, "copy stock")].action else {
        panic!("a COPY")
    };
    assert_eq!(before, "TRUNCATE stock");
    assert!(sql.ends_with("FROM STDIN (FORMAT binary, FREEZE)"), "{sql}");
    let steps = case(&json!({}), Copies::Batches, 180_000).steps();
    let first = "copy stock, batches 1 to 45 of 300";
    let Action::Copy { before, sql, .. } = &steps[at(&steps, first)].action else {
        panic!("a COPY")
    };
    assert_eq!(before, "LOCK TABLE stock IN ROW EXCLUSIVE MODE");
    assert!(sql.ends_with("FROM STDIN (FORMAT binary)"), "{sql}");
    assert_eq!(after(&steps, "build stock_pkey").len(), 7);
    let wait = "put all commits on disk";
    assert_eq!(after(&steps, "vacuum item"), [wait], "rows of open transactions are not frozen");
    for step in ["declare the key of stock", "copy history, batches 1 to 30 of 30"] {
        assert!(after(&steps, wait).contains(&step), "{step}");
    }
}

#[test]
fn a_table_waits_for_no_other_before_the_references() {
    let steps = case(&json!({"foreign_keys": true}), Copies::Tables, 180_000).steps();
    assert_eq!(after(&steps, "build customer_by_name"), ["copy customer"]);
    let builds = ["build customer_by_name", "build customer_pkey"];
    assert_eq!(after(&steps, "declare the key of customer"), builds);
    assert_eq!(after(&steps, "vacuum customer"), ["declare the key of customer"]);
    assert_eq!(after(&steps, "vacuum history"), ["copy history"]);
    let added = after(&steps, "add references, unchecked");
    assert_eq!(added.len(), 9, "after the vacuum of every table: {added:?}");
    assert_eq!(sql(&steps, "add references, unchecked").matches(" NOT VALID").count(), 10);
    assert_eq!(after(&steps, "check references of stock"), ["add references, unchecked"]);
}

#[test]
fn partitions_are_indexed_each_and_attached_before_the_table_is_analysed() {
    let more = json!({"partitions": {"by": "range", "count": 2}});
    let steps = case(&more, Copies::Tables, 180_000).steps();
    assert_eq!(after(&steps, "build orders_pkey_p2"), ["copy orders_p2"]);
    assert_eq!(
        sql(&steps, "declare the key of orders_p2"),
        "ALTER TABLE orders_p2 ADD CONSTRAINT orders_pkey_p2 PRIMARY KEY USING INDEX orders_pkey_p2"
    );
    assert_eq!(sql(&steps, "vacuum orders_p2"), "VACUUM (FREEZE, BUFFER_USAGE_LIMIT 0) orders_p2");
    let vacuums = ["vacuum orders_p1", "vacuum orders_p2"];
    assert_eq!(after(&steps, "attach indexes to orders"), vacuums);
    let attach = sql(&steps, "attach indexes to orders");
    assert!(
        attach.contains("CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)")
    );
    let key = "ALTER TABLE orders ADD CONSTRAINT orders_pkey PRIMARY KEY (o_w_id, o_d_id, o_id)";
    assert!(attach.contains(key), "{attach}");
    assert_eq!(after(&steps, "analyse orders"), ["attach indexes to orders"]);
}

#[test]
fn old_servers_are_not_asked_for_what_they_do_not_know() {
    let more = json!({"foreign_keys": true, "partitions": {"by": "hash", "count": 2}});
    let steps = case(&more, Copies::Batches, 150_020).steps();
    assert_eq!(sql(&steps, "vacuum item"), "VACUUM (FREEZE, ANALYZE) item");
    assert!(!steps.iter().any(|step| step.name.contains("unchecked")), "all are partitioned");
    let added = sql(&steps, "add references of stock");
    assert!(added.contains("REFERENCES item (i_id)") && !added.contains("NOT VALID"), "{added}");
    let steps = case(&json!({"foreign_keys": true}), Copies::Batches, 150_020).steps();
    assert_eq!(sql(&steps, "add references, unchecked").matches(" NOT VALID").count(), 10);
}

#[test]
fn added_units_go_through_the_table_and_leave_the_rest_alone() {
    let mut case =
        case(&json!({"partitions": {"by": "range", "count": 2}}), Copies::Batches, 180_000);
    case.begun.from_units = 1;
    case.begun.builds = false;
    let growing = (0..case.dataset.tables().len()).filter(|at| case.dataset.growth(*at).is_some());
    case.filled = growing
        .map(|table| Relation {
            table,
            name: case.dataset.tables()[table].name.clone(),
            partition: None,
            units: Units::Range(1..3),
        })
        .collect();
    let steps = case.steps();
    let copies: Vec<&str> = steps
        .iter()
        .filter(|step| step.phase == Phase::Copy && step.name.contains("stock"))
        .map(|step| step.name.as_str())
        .collect();
    assert_eq!(copies.len(), 5, "a hundred batches for each of two warehouses, 16 MiB at a time");
    assert_eq!(copies[0], "copy stock, batches 1 to 45 of 200");
    assert!(!steps.iter().any(|step| step.name.starts_with("copy item")));
    assert!(!steps.iter().any(|step| step.phase == Phase::Index));
    let wait = "put all commits on disk";
    assert_eq!(after(&steps, "vacuum stock_p2"), [wait]);
    assert!(after(&steps, wait).contains(&copies[4]));
}
