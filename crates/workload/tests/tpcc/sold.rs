//! Traps in New-Order.

use serde_json::json;
use wire::Timestamp;
use workload::{
    Outcome, Workload,
    tpcc::{
        Tpcc,
        cardinalities::UNUSED_ITEM,
        input::{Line, NewOrder, Request},
        spec::Face,
        transact::{NewOrderReply, enter_order},
    },
};

use super::{
    books::{Books, DISCOUNT, Sent, TAX, price},
    finish, tpcc,
};

const NOW: Timestamp = Timestamp(815_000_000_000_000);

fn line(item: i32, supply: i32, quantity: i32) -> Line {
    Line { item, supply, quantity }
}

/// Five lines: out of order, one remote, one item twice, items of every brand.
fn order() -> NewOrder {
    let lines = [line(60, 1, 3), line(7, 2, 10), line(9, 1, 1), line(60, 1, 4), line(8, 1, 2)];
    NewOrder::new(1, 4, 77, &lines)
}

fn unused() -> NewOrder {
    let lines =
        [line(9, 1, 1), line(5, 1, 2), line(6, 1, 3), line(8, 1, 2), line(UNUSED_ITEM, 1, 1)];
    NewOrder::new(1, 4, 77, &lines)
}

fn enter(tpcc: &Tpcc, order: &NewOrder) -> (Books, NewOrderReply) {
    let mut books = Books::of(tpcc);
    let entered = enter_order(&mut books, tpcc.spec().face, order, NOW);
    let reply = finish(entered).expect("an order");
    (books, reply)
}

#[test]
fn trap_05_a_rollback_does_the_work_of_all_other_lines_first() {
    let tpcc = tpcc(json!({}));
    let (books, reply) = enter(&tpcc, &unused());
    assert!(reply.rolled_back);
    assert_eq!(
        books.statements(),
        [
            "begin",
            "no_warehouse",
            "no_district",
            "no_customer",
            "no_items",
            "no_stock_04",
            "no_stock_04",
            "no_stock_04",
            "no_stock_04",
            "no_order",
            "no_new_order",
            "no_lines",
            "rollback",
        ]
    );
    let asked = books.of_statement("no_items").next().expect("asked").ints(0);
    assert!(asked.contains(&UNUSED_ITEM), "the database must be asked for it");
    let lines = books.of_statement("no_lines").next().expect("entered");
    assert_eq!(lines.ints(3), [1, 2, 3, 4]);
}

#[test]
fn trap_05_it_is_the_databases_answer_that_decides() {
    let tpcc = tpcc(json!({}));
    let mut books = Books::of(&tpcc);
    books.items = UNUSED_ITEM;
    let request = Request::NewOrder(unused());
    let outcome = finish(tpcc.perform(&mut books, &request, NOW)).expect("an order");
    assert_eq!(outcome, Outcome::Committed);
    assert_eq!(books.statements().last(), Some(&"commit"));
}

#[test]
fn trap_06_stock_is_taken_where_the_line_says() {
    let (books, _) = enter(&tpcc(json!({})), &order());
    let taken: Vec<[i32; 4]> =
        books.of_statement("no_stock_").map(|e| [0, 1, 2, 3].map(|param| e.int(param))).collect();
    // Supplier, item, quantity, whether remote.
    assert!(taken.contains(&[2, 7, 10, 1]), "{taken:?}");
    assert_eq!(taken.iter().filter(|stock| stock[3] == 1).count(), 1);
    let entered = books.of_statement("no_order").next().expect("entered");
    assert_eq!(entered.int(6), 0, "O_ALL_LOCAL");
    let supplies = books.of_statement("no_lines").next().expect("entered").ints(5);
    assert_eq!(supplies, [1, 2, 1, 1, 1]);

    let (books, _) = enter(&tpcc(json!({})), &NewOrder::new(1, 4, 77, &[line(9, 1, 1); 5]));
    assert_eq!(books.of_statement("no_order").next().expect("entered").int(6), 1);
}

#[test]
fn trap_08_quantity_falls_by_what_is_ordered_and_is_filled_up_by_91() {
    let tpcc = tpcc(json!({}));
    for number in 1..=10 {
        let name = format!("no_stock_{number:02}");
        let statement = tpcc.statements().iter().find(|s| s.name == name).expect("prepared");
        assert!(statement.sql.contains(
            "s_quantity = CASE WHEN s_quantity >= $3 + 10 THEN s_quantity - $3 \
             ELSE s_quantity - $3 + 91 END"
        ));
        assert!(
            statement.sql.contains(&format!("RETURNING s_quantity, s_dist_{number:02}, s_data"))
        );
    }
}

#[test]
fn trap_09_every_counter_of_the_stock_is_kept() {
    let tpcc = tpcc(json!({}));
    let statement = tpcc.statements().iter().find(|s| s.name == "no_stock_05").expect("prepared");
    for part in
        ["s_ytd = s_ytd + $3", "s_order_cnt = s_order_cnt + 1", "s_remote_cnt = s_remote_cnt + $4"]
    {
        assert!(statement.sql.contains(part), "{part}");
    }
}

#[test]
fn trap_11_amounts_have_no_tax_and_the_total_has_all() {
    let (books, reply) = enter(&tpcc(json!({})), &order());
    let expected: Vec<i64> =
        order().lines().iter().map(|l| i64::from(l.quantity) * price(l.item)).collect();
    let sent = &books.of_statement("no_lines").next().expect("entered").params[7];
    assert_eq!(*sent, Sent::AllCents(expected.clone()));
    let shown: Vec<i64> = reply.lines().iter().map(|line| line.amount_cents).collect();
    assert_eq!(shown, expected);
    let sum: i64 = expected.iter().sum();
    let exact = i128::from(sum) * i128::from(10_000 - DISCOUNT) * i128::from(10_000 + 2 * TAX);
    assert_eq!(i128::from(reply.total_cents), (exact + 50_000_000) / 100_000_000);
}

#[test]
fn trap_12_brand_needs_original_in_item_and_stock() {
    // On the books the item has it where its number is even, the stock where it is a multiple of 3.
    let (_, reply) = enter(&tpcc(json!({})), &order());
    let brands: Vec<bool> = reply.lines().iter().map(|line| line.brand).collect();
    assert_eq!(brands, [true, false, false, true, false]);
}

#[test]
fn trap_24_dates_come_from_one_clock() {
    let (books, _) = enter(&tpcc(json!({})), &order());
    assert_eq!(books.of_statement("no_order").next().expect("entered").params[4], Sent::Time(NOW));
}

#[test]
fn trap_25_stock_is_locked_in_one_order_and_lines_keep_their_numbers() {
    let (books, _) = enter(&tpcc(json!({})), &order());
    let locked: Vec<(i32, i32)> =
        books.of_statement("no_stock_").map(|entry| (entry.int(0), entry.int(1))).collect();
    assert_eq!(locked, [(1, 8), (1, 9), (1, 60), (1, 60), (2, 7)]);
    let lines = books.of_statement("no_lines").next().expect("entered");
    assert_eq!(lines.ints(3), [1, 2, 3, 4, 5]);
    assert_eq!(lines.ints(4), [60, 7, 9, 60, 8]);
    assert_eq!(lines.ints(6), [3, 10, 1, 4, 2]);
    let infos = [60, 7, 9, 60, 8].map(|item| format!("{item:024}"));
    assert_eq!(lines.params[8], Sent::Texts(infos.to_vec()));
}

#[test]
fn the_order_takes_the_number_that_the_district_gives() {
    let (books, reply) = enter(&tpcc(json!({})), &order());
    assert_eq!(reply.order, 3001);
    for name in ["no_order", "no_new_order", "no_lines"] {
        let entry = books.of_statement(name).next().expect("entered");
        assert_eq!([0, 1, 2].map(|param| entry.int(param)), [3001, 4, 1], "{name}");
    }
    assert_eq!(books.of_statement("no_order").next().expect("entered").int(5), 5, "O_OL_CNT");
}

#[test]
fn a_missing_row_is_an_error_that_says_which() {
    let tpcc = tpcc(json!({}));
    for (lost, part) in [
        ("no_warehouse", "warehouse has no row [1]"),
        ("no_district", "district has no row [1, 4]"),
        ("no_customer", "customer has no row [1, 4, 77]"),
        ("no_stock_", "stock has no row [1, 8]"),
        ("no_items", "item has no row"),
    ] {
        let mut books = Books::of(&tpcc);
        books.lost = Some(lost);
        let order = order();
        let entered = enter_order(&mut books, Face::Statement, &order, NOW);
        let error = finish(entered).expect_err("must fail");
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.to_string().contains("fewer warehouses than the plan says"), "{error}");
        assert!(!error.is_retryable() && !error.is_closed());
    }
}
