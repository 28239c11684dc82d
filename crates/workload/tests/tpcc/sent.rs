//! Traps in Payment, Order-Status, Delivery and Stock-Level.

use serde_json::json;
use wire::Timestamp;
use workload::{
    Outcome, Workload,
    tpcc::{
        Tpcc, VERSION,
        consistency::conditions,
        input::{Customer, Delivery, OrderStatus, Payment, Request, StockLevel},
        schema::Schema,
        spec::LoadConstants,
    },
};

use super::{
    books::{Books, Sent},
    finish, tpcc,
};

const NOW: Timestamp = Timestamp(815_000_000_000_000);

fn payment(customer: Customer) -> Request {
    Request::Payment(Payment {
        warehouse: 2,
        district: 5,
        customer_warehouse: 3,
        customer_district: 6,
        customer,
        amount_cents: 1234,
    })
}

fn status(customer: Customer) -> Request {
    Request::OrderStatus(OrderStatus { warehouse: 2, district: 5, customer })
}

fn performed(tpcc: &Tpcc, request: &Request) -> Books {
    let mut books = Books::of(tpcc);
    let outcome = finish(tpcc.perform(&mut books, request, NOW)).expect("performed");
    assert_eq!(outcome, Outcome::Committed);
    books
}

fn sql<'a>(tpcc: &'a Tpcc, name: &str) -> &'a str {
    &tpcc.statements().iter().find(|s| s.name == name).expect("prepared").sql
}

#[test]
fn trap_04_of_the_namesakes_the_middle_one_is_taken_rounded_up() {
    let tpcc = tpcc(json!({}));
    for (namesakes, place) in [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (6, 3), (7, 4)] {
        for (request, asked, used) in [
            (payment(Customer::LastName(371)), "pay_names", "pay_customer"),
            (status(Customer::LastName(371)), "os_names", "os_order"),
        ] {
            let mut books = Books::of(&tpcc);
            books.namesakes = namesakes;
            finish(tpcc.perform(&mut books, &request, NOW)).expect("performed");
            let name = &books.of_statement(asked).next().expect("asked").params[2];
            assert_eq!(*name, Sent::Text("PRICALLYOUGHT".into()));
            assert!(sql(&tpcc, asked).ends_with("ORDER BY c_first"));
            let customer = books.of_statement(used).next().expect("used").int(2);
            assert_eq!(customer, 100 + place, "{asked}, {namesakes} namesakes");
        }
    }
    let mut books = Books::of(&tpcc);
    books.namesakes = 0;
    let request = payment(Customer::LastName(0));
    let error = finish(tpcc.perform(&mut books, &request, NOW)).expect_err("nobody");
    assert!(error.to_string().contains("customer BARBARBAR has no row [3, 6]"), "{error}");
}

#[test]
fn trap_07_the_payment_is_booked_here_for_a_customer_there() {
    let tpcc = tpcc(json!({}));
    let books = performed(&tpcc, &payment(Customer::Id(9)));
    assert_eq!(
        books.statements(),
        ["begin", "pay_warehouse", "pay_district", "pay_customer", "pay_history", "commit"]
    );
    let customer = books.of_statement("pay_customer").next().expect("paid");
    assert_eq!([0, 1, 2, 4, 5].map(|param| customer.int(param)), [3, 6, 9, 5, 2]);
    let history = books.of_statement("pay_history").next().expect("recorded");
    assert_eq!([0, 1, 2, 3, 4].map(|param| history.int(param)), [9, 6, 3, 5, 2]);
    assert_eq!(history.params[6], Sent::Cents(1234));
    assert_eq!(history.params[7], Sent::Text("Ware    Dist".into()));
}

#[test]
fn trap_10_sums_and_counts_are_computed_from_the_locked_row() {
    let tpcc = tpcc(json!({}));
    let paid = sql(&tpcc, "pay_customer");
    for part in [
        "c_balance = c_balance - $4",
        "c_ytd_payment = c_ytd_payment + $4",
        "c_payment_cnt = c_payment_cnt + 1",
    ] {
        assert!(paid.contains(part), "{part}");
    }
    assert!(sql(&tpcc, "pay_warehouse").contains("w_ytd = w_ytd + $2"));
    assert!(sql(&tpcc, "pay_district").contains("d_ytd = d_ytd + $3"));
    let delivered = sql(&tpcc, "del_customer");
    assert!(delivered.contains("c_balance = c_balance + $4"));
    assert!(delivered.contains("c_delivery_cnt = c_delivery_cnt + 1"));
    assert!(sql(&tpcc, "no_district").contains("d_next_o_id = d_next_o_id + 1"));
    // Nothing is read first and written back: no statement of these transactions selects a sum.
    for statement in tpcc.statements().iter().filter(|s| s.name.starts_with("pay_")) {
        let reads = statement.sql.starts_with("SELECT");
        assert!(!reads || statement.name == "pay_names", "{}", statement.name);
    }
}

#[test]
fn trap_13_data_of_bad_credit_is_pushed_right_and_cut_at_500() {
    let tpcc = tpcc(json!({}));
    assert!(sql(&tpcc, "pay_customer").contains(
        "c_data = CASE c_credit WHEN 'BC' THEN \
         left(concat_ws(' ', c_id, c_d_id, c_w_id, $5, $6, $4, c_data), 500) ELSE c_data END"
    ));
}

#[test]
fn trap_16_a_delivery_goes_through_all_ten_districts_and_counts_the_empty() {
    let tpcc = tpcc(json!({}));
    let request = Request::Delivery(Delivery { warehouse: 2, carrier: 7 });
    let books = performed(&tpcc, &request);
    let districts: Vec<i32> = books.of_statement("del_new_order").map(|e| e.int(1)).collect();
    assert_eq!(districts, (1..=10).collect::<Vec<i32>>());
    for name in ["del_order", "del_lines", "del_customer"] {
        assert_eq!(books.of_statement(name).count(), 10, "{name}");
    }
    let carrier = books.of_statement("del_order").next().expect("delivered").int(3);
    assert_eq!(carrier, 7);
    let customer = books.of_statement("del_customer").next().expect("delivered");
    assert_eq!((customer.int(2), &customer.params[3]), (77, &Sent::Cents(12_345)));
    assert_eq!(
        books.of_statement("del_lines").next().expect("delivered").params[3],
        Sent::Time(NOW)
    );
    assert!(sql(&tpcc, "del_new_order").contains("ORDER BY no_o_id LIMIT 1 FOR UPDATE"));

    let mut books = Books::of(&tpcc);
    books.delivered = vec![3, 10];
    let outcome = finish(tpcc.perform(&mut books, &request, NOW)).expect("performed");
    assert_eq!(outcome, Outcome::CommittedInPart { skipped: 2 });
    assert!(outcome.is_committed());
    assert_eq!(books.of_statement("del_order").count(), 8);
    assert_eq!(books.statements().last(), Some(&"commit"));
}

#[test]
fn trap_17_stock_level_counts_distinct_items_of_the_last_twenty_orders() {
    let tpcc = tpcc(json!({}));
    let level = StockLevel { warehouse: 2, district: 5, threshold: 13 };
    let books = performed(&tpcc, &Request::StockLevel(level));
    let counted = books.of_statement("sl_count").next().expect("counted");
    assert_eq!([0, 1, 2, 3].map(|param| counted.int(param)), [2, 5, 3001, 13]);
    let sql = sql(&tpcc, "sl_count");
    for part in ["DISTINCT ol_i_id", "ol_o_id >= $3 - 20", "ol_o_id < $3", "s_quantity < $4"] {
        assert!(sql.contains(part), "{part}");
    }
}

#[test]
fn trap_21_a_rollback_is_no_commit_and_an_error_no_outcome() {
    assert!(Outcome::Committed.is_committed() && !Outcome::RolledBack.is_committed());
    let tpcc = tpcc(json!({}));
    let mut books = Books::of(&tpcc);
    books.lost = Some("pay_district");
    let failed = finish(tpcc.perform(&mut books, &payment(Customer::Id(9)), NOW));
    let error = failed.expect_err("a district is missing");
    assert!(error.to_string().contains("district has no row [2, 5]"), "{error}");
    assert!(!books.statements().contains(&"commit"));
}

#[test]
fn trap_22_the_isolation_is_said_and_order_status_sees_one_snapshot() {
    for isolation in ["read committed", "repeatable read", "serializable"] {
        let tpcc = tpcc(json!({"isolation": isolation}));
        let level = format!("BEGIN ISOLATION LEVEL {}", isolation.to_uppercase());
        assert_eq!(sql(&tpcc, "begin"), level);
        assert_eq!(json!(tpcc.spec())["isolation"], isolation);
        let books = performed(&tpcc, &status(Customer::Id(9)));
        assert_eq!(books.statements()[0], "begin_snapshot");
        assert!(!sql(&tpcc, "begin_snapshot").contains("READ COMMITTED"));
        assert!(sql(&tpcc, "begin_snapshot").ends_with("READ ONLY"));
    }
    let deviations = tpcc(json!({})).describe().deviations;
    assert!(deviations.iter().any(|one| one.what.contains("READ COMMITTED")));
}

#[test]
fn trap_24_payments_carry_the_time_they_are_given() {
    let books = performed(&tpcc(json!({})), &payment(Customer::Id(9)));
    let history = books.of_statement("pay_history").next().expect("recorded");
    assert_eq!(history.params[5], Sent::Time(NOW));
}

#[test]
fn trap_25_deliveries_lock_districts_in_ascending_order() {
    let request = Request::Delivery(Delivery { warehouse: 2, carrier: 7 });
    let books = performed(&tpcc(json!({})), &request);
    let locked: Vec<i32> = books.of_statement("del_").map(|entry| entry.int(1)).collect();
    assert!(locked.is_sorted(), "{locked:?}");
}

#[test]
fn trap_26_reading_transactions_are_committed() {
    let tpcc = tpcc(json!({}));
    let level = StockLevel { warehouse: 2, district: 5, threshold: 13 };
    for request in [Request::StockLevel(level), status(Customer::LastName(1))] {
        let books = performed(&tpcc, &request);
        assert_eq!(books.statements().last(), Some(&"commit"));
        let begins = books.of_statement("begin").count();
        assert_eq!(begins, 1, "one transaction");
    }
}

#[test]
fn trap_27_all_twelve_conditions_are_there() {
    let load = LoadConstants { c_last: 0, c_delivery_cnt: 0 };
    let all = conditions(Schema::Spec, load);
    let numbers: Vec<u32> = all.iter().map(|condition| condition.number).collect();
    assert!(all.iter().all(|condition| !condition.sql.contains(['{', '}'])));
    assert_eq!(numbers, (1..=12).collect::<Vec<u32>>());
    let described = tpcc(json!({"warehouses": 2})).describe();
    assert_eq!(described.conditions.len(), 12);
    assert!(described.load_checks.len() > 15);
}

#[test]
fn the_description_says_what_the_workload_is() {
    let described = tpcc(json!({"warehouses": 10})).describe();
    assert_eq!((described.name.as_str(), described.version), ("tpcc", VERSION));
    assert_eq!((described.kinds.len(), described.tables.len()), (5, 9));
    assert_eq!(described.indexes.len(), 10);
    let bytes = described.disk_bytes_estimate;
    assert!((900_000_000..1_300_000_000).contains(&bytes), "{bytes}");
    let sum: f64 = described.mix.values().sum();
    assert!((sum - 1.0).abs() < 1e-9);
}
