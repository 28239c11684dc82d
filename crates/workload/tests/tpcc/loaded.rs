//! Traps in the initial rows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;
use wire::Decimal;
use workload::{
    chi_square::by_likelihood,
    nurand::NuRand,
    tpcc::{constants::of_load, names::LastNames, rows::Target, schema::TABLES},
};

use super::{
    copied::{LOADED_AT, all, batches},
    tpcc,
};

#[test]
fn trap_03_the_first_thousand_customers_have_all_names_the_rest_are_drawn() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    let names = LastNames::default();
    let number: BTreeMap<&str, usize> =
        (0..1000).map(|n| (names.get(n), usize::try_from(n).expect("positive"))).collect();
    let mut drawn = vec![0; 1000];
    for row in all(&tpcc, Target::Customer) {
        let id = row.int("c_id");
        if id <= 1000 {
            assert_eq!(row.text("c_last"), names.get(id - 1));
        } else {
            drawn[number[row.text("c_last")]] += 1;
        }
    }
    let function = NuRand { a: 255, low: 0, high: 999, c: of_load(tpcc.spec()).c_last };
    let chi = by_likelihood(&function.counts(), &drawn, 50);
    assert!(chi.statistic < chi.limit, "{chi:?}");
    let run = by_likelihood(&tpcc.constants().last_name.counts(), &drawn, 50);
    assert!(run.statistic > run.limit, "the run's constant is another: {run:?}");
}

#[test]
fn trap_12_a_tenth_of_items_and_stock_has_original_somewhere() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    for (target, column, until) in [(Target::Item, "i_data", 10), (Target::Stock, "s_data", 40)] {
        let rows = batches(&tpcc, target, 0, until);
        let mut places = BTreeSet::new();
        let mut found = 0;
        for row in &rows {
            let data = row.text(column);
            assert!((26..=50).contains(&data.len()));
            if let Some(place) = data.find("ORIGINAL") {
                found += 1;
                places.insert(place);
            }
        }
        assert_eq!(found * 10, rows.len());
        // The last place, 42, is for one in 1075 of them.
        assert!((0..=40).all(|place| places.contains(&place)), "not at every place: {places:?}");
        assert!(places.last() <= Some(&42));
    }
}

#[test]
fn trap_13_a_tenth_of_the_customers_has_bad_credit() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    let rows = batches(&tpcc, Target::Customer, 0, 12);
    let bad = rows.iter().filter(|row| row.text("c_credit") == "BC").count();
    assert_eq!(bad * 10, rows.len());
    let good = rows.iter().filter(|row| row.text("c_credit") == "GC").count();
    assert_eq!(good + bad, rows.len());
    assert!(rows.iter().all(|row| (300..=500).contains(&row.text("c_data").len())));
}

#[test]
fn trap_14_orders_are_a_permutation_of_the_customers_and_the_last_900_are_open() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    let orders = all(&tpcc, Target::Orders);
    let mut first_customers = BTreeSet::new();
    for district in orders.chunks(3000) {
        let mut customers: Vec<i32> = district.iter().map(|row| row.int("o_c_id")).collect();
        first_customers.insert(customers[0]);
        assert!(customers.windows(2).any(|pair| pair[0] > pair[1]), "in order of the customers");
        customers.sort_unstable();
        assert_eq!(customers, (1..=3000).collect::<Vec<i32>>());
        for (row, number) in district.iter().zip(1..) {
            assert_eq!(row.int("o_id"), number);
            assert_eq!(row.bytes("o_carrier_id").is_some(), number < 2101);
            assert!(
                row.bytes("o_carrier_id")
                    .is_none_or(|_| (1..=10).contains(&row.int("o_carrier_id")))
            );
            assert_eq!(row.int("o_all_local"), 1);
        }
    }
    assert!(first_customers.len() > 1, "each district has its own permutation");

    let open: Vec<(i32, i32)> = all(&tpcc, Target::NewOrder)
        .iter()
        .map(|row| (row.int("no_d_id"), row.int("no_o_id")))
        .collect();
    let expected = (1..=10).flat_map(|d| (2101..=3000).map(move |o| (d, o)));
    assert_eq!(open, expected.collect::<Vec<_>>());
}

#[test]
fn trap_14_lines_of_delivered_orders_cost_nothing_and_have_a_date() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    let counts: BTreeMap<(i32, i32), i32> = all(&tpcc, Target::Orders)
        .iter()
        .map(|row| ((row.int("o_d_id"), row.int("o_id")), row.int("o_ol_cnt")))
        .collect();
    let mut lines = BTreeMap::new();
    for row in batches(&tpcc, Target::OrderLine, 0, 20) {
        let order = (row.int("ol_d_id"), row.int("ol_o_id"));
        let count: &mut i32 = lines.entry(order).or_default();
        *count += 1;
        assert_eq!(row.int("ol_number"), *count);
        let delivered = order.1 < 2101;
        assert_eq!(row.bytes("ol_delivery_d").is_some(), delivered);
        let amount = row.decimal("ol_amount");
        assert_eq!(amount.scale, 2);
        assert!(if delivered {
            amount.unscaled == 0
        } else {
            (1..=999_999).contains(&amount.unscaled)
        });
        assert_eq!((row.int("ol_quantity"), row.int("ol_supply_w_id")), (5, 1));
        assert!((1..=100_000).contains(&row.int("ol_i_id")));
        assert_eq!(row.text("ol_dist_info").len(), 24);
    }
    assert_eq!(lines.len(), 6000);
    assert!(lines.iter().all(|(order, count)| counts[order] == *count));
    let histogram = (5..=15).map(|n| counts.values().filter(|count| **count == n).count() as u64);
    let histogram: Vec<u64> = histogram.collect();
    assert_eq!(histogram.iter().sum::<u64>(), 30_000, "no count outside 5 to 15");
    let chi = by_likelihood(&[1; 11], &histogram, 11);
    assert!(chi.statistic < chi.limit, "{chi:?}");
}

#[test]
fn trap_15_customers_start_without_deliveries() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    for row in batches(&tpcc, Target::Customer, 0, 3) {
        assert_eq!((row.int("c_delivery_cnt"), row.int("c_payment_cnt")), (0, 1));
        assert_eq!(row.decimal("c_balance"), Decimal::new(-1_000, 2));
        assert_eq!(row.decimal("c_ytd_payment"), Decimal::new(1_000, 2));
        assert_eq!(row.decimal("c_credit_lim"), Decimal::new(5_000_000, 2));
        assert!((0..=5000).contains(&row.decimal("c_discount").unscaled));
        assert_eq!(row.text("c_middle"), "OE");
        assert!(row.text("c_zip").ends_with("11111") && row.text("c_zip").len() == 9);
        assert!(row.text("c_phone").len() == 16);
    }
}

#[test]
fn trap_23_what_only_grows_has_room() {
    let kind = |name: &str| {
        let columns = TABLES.iter().flat_map(|table| table.columns);
        columns.filter(|(column, _)| *column == name).map(|(_, kind)| *kind).next().expect(name)
    };
    // At 10^6 payments a minute on one warehouse, numeric(12,2) is full after four minutes;
    // numeric(18,2) after seven years.
    for column in ["w_ytd", "d_ytd", "c_balance", "c_ytd_payment"] {
        assert_eq!(kind(column), "numeric(18,2) NOT NULL");
    }
    for column in [
        "s_ytd",
        "s_order_cnt",
        "s_remote_cnt",
        "c_payment_cnt",
        "c_delivery_cnt",
        "d_next_o_id",
        "s_quantity",
    ] {
        assert_eq!(kind(column), "integer NOT NULL", "{column}");
    }
}

#[test]
fn trap_24_loaded_dates_are_distinct_and_follow_the_loads_time() {
    let tpcc = tpcc(json!({"warehouses": 2}));
    for (target, column) in
        [(Target::Orders, "o_entry_d"), (Target::Customer, "c_since"), (Target::History, "h_date")]
    {
        let rows = all(&tpcc, target);
        let times: Vec<i64> = rows.iter().map(|row| row.time(column)).collect();
        assert_eq!(times[0], LOADED_AT.0);
        assert!(times.windows(2).all(|pair| pair[1] == pair[0] + 1), "{column}");
    }
}

#[test]
fn trap_28_strings_are_random_in_every_row_and_full_length() {
    let tpcc = tpcc(json!({"warehouses": 1}));
    let rows = batches(&tpcc, Target::Stock, 0, 2);
    let mut seen = BTreeSet::new();
    let mut characters = BTreeSet::new();
    for row in &rows {
        for district in 1..=10 {
            let info = row.text(&format!("s_dist_{district:02}"));
            assert_eq!(info.len(), 24);
            assert!(info.bytes().collect::<BTreeSet<u8>>().len() > 6, "one character: {info}");
            characters.extend(info.bytes());
            assert!(seen.insert(info.to_owned()), "{info} came twice");
        }
    }
    assert_eq!(characters.len(), 62);
    for (target, column, low, high) in [
        (Target::Customer, "c_first", 8, 16),
        (Target::Customer, "c_street_1", 10, 20),
        (Target::History, "h_data", 12, 24),
        (Target::Item, "i_name", 14, 24),
    ] {
        let rows = batches(&tpcc, target, 0, 1);
        let lengths: BTreeSet<usize> = rows.iter().map(|row| row.text(column).len()).collect();
        assert_eq!(lengths, (low..=high).collect(), "{column}");
    }
}

#[test]
fn a_batch_depends_on_its_number_alone() {
    let spec = json!({"warehouses": 3, "seed": 9});
    let (first, second) = (tpcc(spec.clone()).rows(LOADED_AT), tpcc(spec).rows(LOADED_AT));
    for target in Target::ALL {
        let last = first.batches(target) - 1;
        let (mut alone, mut after, mut before) = (Vec::new(), Vec::new(), Vec::new());
        first.batch(target, last, &mut alone);
        second.batch(target, 0, &mut before);
        second.batch(target, last, &mut after);
        assert_eq!(alone, after, "{target:?}");
        assert!(last == 0 || before != after, "{target:?}");
    }
}

#[test]
fn tables_have_the_cardinalities_of_the_text() {
    let rows = tpcc(json!({"warehouses": 2})).rows(LOADED_AT);
    for (target, count) in [
        (Target::Warehouse, 2),
        (Target::District, 20),
        (Target::Customer, 60_000),
        (Target::History, 60_000),
        (Target::Orders, 60_000),
        (Target::NewOrder, 18_000),
        (Target::Item, 100_000),
        (Target::Stock, 200_000),
    ] {
        assert_eq!(rows.rows(target), count, "{target:?}");
    }
    let lines = rows.rows(Target::OrderLine);
    assert!((590_000..610_000).contains(&lines), "{lines}");
}

#[test]
fn warehouses_and_districts_start_with_the_sums_of_the_text() {
    let tpcc = tpcc(json!({"warehouses": 2}));
    let warehouses = all(&tpcc, Target::Warehouse);
    let tax = |row: &super::copied::Row, column| (0..=2000).contains(&row.decimal(column).unscaled);
    for (row, number) in warehouses.iter().zip(1..) {
        assert_eq!(row.int("w_id"), number);
        assert_eq!(row.decimal("w_ytd"), Decimal::new(30_000_000, 2));
        assert!(tax(row, "w_tax"));
        assert!(row.text("w_state").bytes().all(|byte| byte.is_ascii_uppercase()));
    }
    for row in all(&tpcc, Target::District) {
        assert_eq!(row.decimal("d_ytd"), Decimal::new(3_000_000, 2));
        assert_eq!(row.int("d_next_o_id"), 3001);
        assert!(tax(&row, "d_tax"));
    }
    for row in batches(&tpcc, Target::Item, 3, 4) {
        assert!((100..=10_000).contains(&row.decimal("i_price").unscaled));
        assert!((1..=10_000).contains(&row.int("i_im_id")));
    }
    for row in batches(&tpcc, Target::Stock, 100, 101) {
        assert_eq!(row.int("s_w_id"), 2);
        assert!((10..=100).contains(&row.int("s_quantity")));
        assert_eq!([row.int("s_ytd"), row.int("s_order_cnt"), row.int("s_remote_cnt")], [0; 3]);
    }
}
