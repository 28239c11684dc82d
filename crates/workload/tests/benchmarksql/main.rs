//! Rules `benchmarksql-5`: the statements of `BenchmarkSQL` 5, their order and their exchanges.

mod session;

use serde_json::{Value, json};
use session::{Session, finish};
use wire::Timestamp;
use workload::{
    Outcome, Workload,
    tpcc::{
        Tpcc,
        cardinalities::UNUSED_ITEM,
        input::{Customer, Delivery, Line, NewOrder, OrderStatus, Payment, Request, StockLevel},
    },
};

const NOW: Timestamp = Timestamp(815_000_000_000_000);

fn spec(changes: &Value) -> Value {
    let mut spec = json!({"kind": "tpcc", "warehouses": 3, "schema": "bmsql",
                          "rules": "benchmarksql-5", "delivery": "inline"});
    for (key, value) in changes.as_object().expect("an object") {
        spec[key] = value.clone();
    }
    spec
}

fn perform(session: &mut Session, request: &Request) -> Outcome {
    let tpcc = Tpcc::from_spec(&spec(&json!({}))).expect("a specification");
    finish(tpcc.perform(session, request, NOW)).expect("performed")
}

fn order(items: &[(i32, i32)]) -> Request {
    let lines: Vec<Line> =
        items.iter().map(|&(item, supply)| Line { item, supply, quantity: 4 }).collect();
    Request::NewOrder(NewOrder::new(1, 4, 77, &lines))
}

#[test]
fn a_new_order_is_eight_exchanges_and_two_for_each_line() {
    let mut session = Session::new();
    let request = order(&[(60, 1), (7, 2), (9, 1), (61, 1), (8, 1)]);
    assert_eq!(perform(&mut session, &request), Outcome::Committed);
    let mut expected =
        vec!["begin no_district", "no_customer", "no_take_number", "no_order", "no_new_order"];
    expected.extend(["no_item", "no_stock"].repeat(5));
    let (stock, lines) = (["no_take_stock"; 5].join(" "), ["no_line"; 5].join(" "));
    expected.extend([stock.as_str(), lines.as_str(), "commit"]);
    assert_eq!(session.exchanges(), expected);
    assert_eq!(session.log.len(), 8 + 2 * 5);
}

#[test]
fn lines_are_numbered_in_the_order_of_their_locks() {
    let mut session = Session::new();
    perform(&mut session, &order(&[(60, 1), (7, 2), (9, 1), (61, 1), (8, 1)]));
    let lines: Vec<&[String]> =
        session.of("no_line").iter().map(|asked| &asked.params[3..8]).collect();
    assert_eq!(lines[0], ["1", "8", "1", "4", "0.32"]);
    assert_eq!(lines[1], ["2", "9", "1", "4", "0.36"]);
    assert_eq!(lines[4], ["5", "7", "2", "4", "0.28"]);
    let stock = session.of("no_take_stock");
    assert_eq!(stock[0].params, ["46", "4", "0", "1", "8"]);
    assert_eq!(stock[4].params, ["46", "4", "1", "2", "7"]);
    assert_eq!(session.of("no_order")[0].params[6], "0", "one line is remote");
}

#[test]
fn a_low_stock_is_filled_up_and_nothing_taken_from_it() {
    for (stock, written) in [(14, "10"), (13, "104"), (10, "101")] {
        let mut session = Session::new();
        session.stock = stock;
        perform(&mut session, &order(&[(8, 1)]));
        assert_eq!(session.of("no_take_stock")[0].params[0], written);
    }
}

#[test]
fn an_unused_item_ends_the_order_after_the_work_before_it() {
    let mut session = Session::new();
    // The remote line comes after the unused item in the order of locks.
    let request = order(&[(60, 1), (7, 2), (9, 1), (UNUSED_ITEM, 1)]);
    assert_eq!(perform(&mut session, &request), Outcome::RolledBack);
    let exchanges = session.exchanges();
    assert_eq!(
        exchanges[5..],
        [
            "no_item",
            "no_stock",
            "no_item",
            "no_stock",
            "no_item",
            "no_line no_line",
            "no_take_stock no_take_stock",
            "rollback",
        ]
    );
}

#[test]
fn an_order_of_the_unused_item_alone_writes_no_line() {
    let mut session = Session::new();
    assert_eq!(perform(&mut session, &order(&[(UNUSED_ITEM, 1)])), Outcome::RolledBack);
    assert_eq!(session.exchanges()[5..], ["no_item", "rollback"]);
}

fn payment(customer: Customer) -> Request {
    Request::Payment(Payment {
        warehouse: 2,
        district: 5,
        customer_warehouse: 3,
        customer_district: 6,
        customer,
        amount_cents: 12_345,
    })
}

#[test]
fn a_payment_takes_the_district_first() {
    let mut session = Session::new();
    assert_eq!(perform(&mut session, &payment(Customer::Id(9))), Outcome::Committed);
    assert_eq!(
        session.exchanges(),
        [
            "begin pay_district",
            "pay_district_read",
            "pay_warehouse",
            "pay_warehouse_read",
            "pay_customer_read",
            "pay_customer",
            "pay_history",
            "commit",
        ]
    );
    assert_eq!(session.of("pay_customer")[0].params, ["123.45", "123.45", "3", "6", "9"]);
    let history = &session.of("pay_history")[0].params;
    assert_eq!(history[..5], ["9", "6", "3", "5", "2"]);
    assert_eq!(history[6..], ["123.45", "name    name"]);
}

#[test]
fn a_name_and_bad_credit_are_one_exchange_more_each() {
    let mut session = Session::new();
    session.credit = "BC";
    perform(&mut session, &payment(Customer::LastName(0)));
    assert_eq!(session.log.len(), 10);
    assert_eq!(session.exchanges()[4], "names");
    assert_eq!(session.exchanges()[6..8], ["pay_data_read", "pay_customer_data"]);
    let paid = &session.of("pay_customer_data")[0].params;
    assert_eq!(paid[2], "C_ID=22 C_D_ID=6 C_W_ID=3 D_ID=5 W_ID=2 H_AMOUNT=123.45   old");
}

#[test]
fn the_readers_end_with_a_rollback() {
    let status =
        |customer| Request::OrderStatus(OrderStatus { warehouse: 1, district: 2, customer });
    let mut session = Session::new();
    assert_eq!(perform(&mut session, &status(Customer::Id(3))), Outcome::Committed);
    assert_eq!(session.exchanges(), ["begin os_customer", "os_order", "os_lines", "rollback"]);

    let mut session = Session::new();
    perform(&mut session, &status(Customer::LastName(3)));
    assert_eq!(session.exchanges()[..2], ["begin names", "os_customer"]);
    assert_eq!(session.of("os_customer")[0].params, ["1", "2", "22"]);
    assert_eq!(session.log.len(), 5);

    let mut session = Session::new();
    let level = Request::StockLevel(StockLevel { warehouse: 1, district: 2, threshold: 15 });
    assert_eq!(perform(&mut session, &level), Outcome::Committed);
    assert_eq!(session.exchanges(), ["begin sl_count", "rollback"]);
    assert_eq!(session.of("sl_count")[0].params, ["1", "15", "1", "2"]);
}

#[test]
fn a_delivery_is_71_exchanges_and_fetches_all_undelivered_orders() {
    let mut session = Session::new();
    let request = Request::Delivery(Delivery { warehouse: 1, carrier: 7 });
    assert_eq!(perform(&mut session, &request), Outcome::Committed);
    assert_eq!(session.log.len(), 71);
    let district = [
        "del_new_orders",
        "del_take",
        "del_order",
        "del_order_read",
        "del_lines",
        "del_sum",
        "del_customer",
    ];
    assert_eq!(session.exchanges()[0], "begin del_new_orders");
    assert_eq!(session.exchanges()[7..14], district);
    assert_eq!(session.exchanges()[70], "commit");
    let sql = |name| {
        let found = workload::tpcc::bmsql::statements::all().into_iter();
        found.filter(|statement| statement.name == name).map(|statement| statement.sql).collect()
    };
    let new_orders: Vec<String> = sql("del_new_orders");
    assert!(!new_orders[0].contains("LIMIT"), "that is what makes it slow");
    assert_eq!(session.of("del_take")[3].params, ["1", "4", "2101"]);
    assert_eq!(session.of("del_customer")[0].params, ["123.45", "1", "1", "77"]);
}

#[test]
fn a_delivery_looks_again_when_another_took_the_order_and_skips_empty_districts() {
    let mut session = Session::new();
    session.snatched = 2;
    session.delivered = vec![3, 10];
    let request = Request::Delivery(Delivery { warehouse: 1, carrier: 7 });
    assert_eq!(perform(&mut session, &request), Outcome::CommittedInPart { skipped: 2 });
    assert_eq!(session.log.len(), 71 + 2 * 2 - 2 * 6);
    assert_eq!(session.of("begin").len(), 1);
}

#[test]
fn the_round_trips_that_are_told_are_those_that_happen() {
    let tpcc = Tpcc::from_spec(&spec(&json!({}))).expect("a specification");
    let told = json!(tpcc.particulars().round_trips["statement"]);
    let of = |kind: &str, end: &str| {
        told[kind][end].as_u64().and_then(|trips| usize::try_from(trips).ok()).expect("a number")
    };
    let count = |session: &mut Session, request: &Request| {
        perform(session, request);
        session.log.len()
    };
    let fifteen: Vec<(i32, i32)> = (1..=15).map(|item| (item, 1)).collect();
    assert_eq!(count(&mut Session::new(), &order(&fifteen)), of("new_order", "most"));
    let unused = [(UNUSED_ITEM, 1), (1, 2), (2, 2), (3, 2), (4, 2)];
    assert_eq!(count(&mut Session::new(), &order(&unused)), of("new_order", "least"));

    let mut bad = Session::new();
    bad.credit = "BC";
    assert_eq!(count(&mut bad, &payment(Customer::LastName(1))), of("payment", "most"));
    let delivery = Request::Delivery(Delivery { warehouse: 1, carrier: 7 });
    let mut empty = Session::new();
    empty.delivered = (1..=10).collect();
    assert_eq!(count(&mut empty, &delivery), of("delivery", "least"));
    assert_eq!(count(&mut Session::new(), &delivery), of("delivery", "most"));
}

#[test]
fn what_benchmarksql_does_not_do_is_refused() {
    for (changes, part) in [
        (json!({"schema": "spec"}), "rules is benchmarksql-5, but schema is spec"),
        (json!({"isolation": "serializable"}), "but isolation is not read committed"),
        (json!({"delivery": "deferred"}), "but delivery is deferred"),
    ] {
        let error = Tpcc::from_spec(&spec(&changes)).expect_err("must be refused");
        assert!(error.fact.contains(part), "{}", error.fact);
        assert!(error.hint.is_some());
    }
}
