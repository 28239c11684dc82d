//! Rows of orders as they arrived: the same rows as warehouse by warehouse, in another order.

use std::{collections::BTreeSet, sync::Arc};

use serde_json::json;
use workload::{dataset::Units, tpcc::rows::Target};

use super::{
    copied::{arrived, batches},
    tpcc,
};

const TABLES: [(Target, [&str; 3]); 3] = [
    (Target::Orders, ["o_id", "o_w_id", "o_d_id"]),
    (Target::OrderLine, ["ol_o_id", "ol_w_id", "ol_d_id"]),
    (Target::NewOrder, ["no_o_id", "no_w_id", "no_d_id"]),
];

#[test]
fn the_rows_are_those_of_the_same_warehouses() {
    let tpcc = tpcc(json!({"warehouses": 3, "seed": 5}));
    let units = Units::List(Arc::from([0, 2].as_slice()));
    for (target, _) in TABLES {
        let own = target.batches_per_warehouse();
        let mut expected: Vec<_> = batches(&tpcc, target, 0, own)
            .into_iter()
            .chain(batches(&tpcc, target, 2 * own, 3 * own))
            .map(|row| row.fields)
            .collect();
        let mut found: Vec<_> =
            arrived(&tpcc, target, &units).into_iter().map(|row| row.fields).collect();
        assert_ne!(found, expected, "{target:?}: in the same order");
        expected.sort_unstable();
        found.sort_unstable();
        assert!(found == expected, "{target:?}");
    }
}

#[test]
fn orders_come_by_number_from_all_districts() {
    let tpcc = tpcc(json!({"warehouses": 2}));
    for (target, [number, warehouse, district]) in TABLES {
        let rows = arrived(&tpcc, target, &Units::Range(0..2));
        let key =
            |row: &super::copied::Row| (row.int(number), row.int(warehouse), row.int(district));
        let keys: Vec<(i32, i32, i32)> = rows.iter().map(key).collect();
        assert!(keys.is_sorted(), "{target:?}");
        let orders: BTreeSet<(i32, i32, i32)> = keys.iter().copied().collect();
        let first = if target == Target::NewOrder { 2101 } else { 1 };
        assert_eq!(orders.len(), usize::try_from((3001 - first) * 20).expect("positive"));
        assert_eq!(keys[0], (first, 1, 1));
    }
}

#[test]
fn other_tables_have_no_such_order() {
    let rows = tpcc(json!({"warehouses": 1})).rows(super::copied::LOADED_AT);
    for target in [Target::Stock, Target::Item, Target::Customer, Target::History] {
        let mut out = b"kept".to_vec();
        assert_eq!(rows.arrived(target, &Units::Range(0..1), 0, &mut out), None);
        assert_eq!(out, b"kept");
    }
}
