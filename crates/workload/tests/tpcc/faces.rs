//! The three faces: how many round trips each takes, and that the same is asked for and answered.

use serde_json::json;
use wire::Timestamp;
use workload::{
    Outcome, Workload,
    tpcc::{
        KINDS, Tpcc,
        cardinalities::UNUSED_ITEM,
        input::{Customer, Delivery, Line, NewOrder, OrderStatus, Payment, Request, StockLevel},
        spec::Face,
        transact::{NewOrderReply, enter_order},
    },
};

use super::{
    books::{Books, Entry, Sent},
    finish, tpcc,
};

const NOW: Timestamp = Timestamp(815_000_000_000_000);

fn of(face: Face) -> Tpcc {
    tpcc(json!({"face": face, "warehouses": 2}))
}

fn line(item: i32, supply: i32, quantity: i32) -> Line {
    Line { item, supply, quantity }
}

/// Out of order, one remote, one item three times.
fn order() -> NewOrder {
    let lines = [line(60, 1, 3), line(7, 2, 10), line(60, 1, 1), line(9, 1, 4), line(60, 1, 2)];
    NewOrder::new(1, 4, 77, &lines)
}

fn unused() -> NewOrder {
    let lines = [line(9, 1, 1), line(6, 1, 2), line(5, 2, 3), line(8, 1, 2)];
    NewOrder::new(1, 4, 77, &[&lines[..], &[line(UNUSED_ITEM, 1, 1)]].concat())
}

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

fn delivery() -> Request {
    Request::Delivery(Delivery { warehouse: 2, carrier: 7 })
}

fn stock_level() -> Request {
    Request::StockLevel(StockLevel { warehouse: 2, district: 5, threshold: 13 })
}

fn performed(face: Face, request: &Request) -> (Books, Outcome) {
    let tpcc = of(face);
    let mut books = Books::of(&tpcc);
    let outcome = finish(tpcc.perform(&mut books, request, NOW)).expect("performed");
    (books, outcome)
}

fn entered(face: Face, order: &NewOrder) -> (Books, NewOrderReply) {
    let mut books = Books::of(&of(face));
    let reply = finish(enter_order(&mut books, face, order, NOW)).expect("an order");
    (books, reply)
}

#[test]
fn round_trips_are_those_that_are_promised() {
    for (request, statement, pipeline) in [
        (Request::NewOrder(order()), vec![1; 14], vec![10, 4]),
        (Request::NewOrder(unused()), vec![1; 13], vec![10, 4]),
        (payment(Customer::Id(9)), vec![1; 6], vec![6]),
        (payment(Customer::LastName(371)), vec![1; 7], vec![2, 5]),
        (status(Customer::Id(9)), vec![1; 5], vec![3, 2]),
        (status(Customer::LastName(371)), vec![1; 5], vec![2, 1, 2]),
        (delivery(), vec![1; 42], vec![11, 20, 11]),
        (stock_level(), vec![1; 4], vec![2, 2]),
    ] {
        assert_eq!(performed(Face::Statement, &request).0.trips, statement, "{request:?}");
        assert_eq!(performed(Face::Pipeline, &request).0.trips, pipeline, "{request:?}");
        assert_eq!(performed(Face::Procedure, &request).0.trips, [1], "{request:?}");
    }
}

#[test]
fn round_trips_of_every_request_are_within_what_is_described() {
    for face in Face::ALL {
        let tpcc = of(face);
        let all = tpcc.particulars().round_trips;
        let face = face.name();
        for number in 0..2_000 {
            let (request, timing) = tpcc.request(3, number);
            let mut books = Books::of(&tpcc);
            finish(tpcc.perform(&mut books, &request, NOW)).expect("performed");
            let promised = all[face][KINDS[timing.kind]];
            let (least, most) = (promised.least as usize, promised.most as usize);
            let trips = books.trips.len();
            assert!(least <= trips && trips <= most, "{face}: {trips} for {request:?}");
        }
    }
}

/// What was asked, in an order of its own, without what a face adds or asks otherwise.
fn asked(books: &Books) -> Vec<String> {
    let same = |entry: &&Entry| !entry.name.starts_with("pay_history");
    let mut asked: Vec<String> =
        books.log.iter().filter(same).map(|entry| format!("{entry:?}")).collect();
    asked.sort_unstable();
    asked
}

#[test]
fn a_pipeline_asks_for_the_same() {
    for request in [
        Request::NewOrder(order()),
        payment(Customer::Id(9)),
        payment(Customer::LastName(371)),
        status(Customer::Id(9)),
        status(Customer::LastName(371)),
        delivery(),
        stock_level(),
    ] {
        let (one_by_one, first) = performed(Face::Statement, &request);
        let (together, second) = performed(Face::Pipeline, &request);
        assert_eq!(asked(&one_by_one), asked(&together));
        assert_eq!(first, second);
        assert_eq!(together.statements().last(), Some(&"commit"));
        assert_eq!(together.of_statement("begin").count(), 1);
    }
    let (books, _) = performed(Face::Pipeline, &payment(Customer::LastName(371)));
    let record = books.of_statement("pay_history_named").next().expect("recorded");
    assert_eq!([0, 1, 2, 3, 4].map(|param| record.int(param)), [102, 6, 3, 5, 2]);
    assert_eq!(record.params[5..], [Sent::Time(NOW), Sent::Cents(1234)]);
}

#[test]
fn trap_05_an_unused_item_is_seen_before_anything_is_committed() {
    let (books, reply) = entered(Face::Pipeline, &unused());
    assert!(reply.rolled_back);
    let statements = books.statements();
    assert_eq!(statements[10..], ["no_order", "no_new_order", "no_lines", "rollback"]);
    assert!(!statements.contains(&"commit"));
    let lines = books.of_statement("no_lines").next().expect("entered");
    assert_eq!(lines.ints(3), [1, 2, 3, 4], "all other lines are entered first");

    let (_, outcome) = performed(Face::Procedure, &Request::NewOrder(unused()));
    assert_eq!(outcome, Outcome::RolledBack);
    // It is the database's answer that decides.
    for face in Face::ALL {
        let tpcc = of(face);
        let mut books = Books::of(&tpcc);
        books.items = UNUSED_ITEM;
        let request = Request::NewOrder(unused());
        let outcome = finish(tpcc.perform(&mut books, &request, NOW)).expect("an order");
        assert_eq!(outcome, Outcome::Committed, "{face:?}");
    }
}

#[test]
fn every_face_shows_the_same() {
    for order in [order(), unused()] {
        let (_, statement) = entered(Face::Statement, &order);
        assert_eq!(entered(Face::Pipeline, &order).1, statement);
        assert_eq!(entered(Face::Procedure, &order).1, statement);
    }
    for face in Face::ALL {
        let tpcc = of(face);
        let mut books = Books::of(&tpcc);
        books.delivered = vec![3, 9];
        let outcome = finish(tpcc.perform(&mut books, &delivery(), NOW)).expect("performed");
        assert_eq!(outcome, Outcome::CommittedInPart { skipped: 2 }, "{face:?}");
    }
}

#[test]
fn trap_25_every_face_locks_stock_in_the_same_order() {
    let (books, _) = entered(Face::Pipeline, &order());
    let locked: Vec<[i32; 2]> =
        books.of_statement("no_stock_").map(|entry| [entry.int(0), entry.int(1)]).collect();
    assert_eq!(locked, [[1, 9], [1, 60], [1, 60], [1, 60], [2, 7]]);

    let (books, _) = entered(Face::Procedure, &order());
    let call = books.of_statement("new_order").next().expect("called");
    // Number of the line, item, supplier, quantity, pass.
    assert_eq!(call.ints(5), [4, 1, 3, 5, 2]);
    assert_eq!(call.ints(6), [9, 60, 60, 60, 7]);
    assert_eq!(call.ints(7), [1, 1, 1, 1, 2]);
    assert_eq!(call.ints(8), [4, 3, 1, 2, 10]);
    assert_eq!(call.ints(9), [1, 1, 2, 3, 1]);
    assert_eq!(call.int(10), 3, "passes");
    assert_eq!(call.int(4), 0, "O_ALL_LOCAL");
}

#[test]
fn a_missing_row_is_an_error_before_the_commit_where_a_client_can_see_it() {
    for (lost, part, committed) in [
        ("no_warehouse", "warehouse has no row [1]", false),
        ("no_district", "district has no row [1, 4]", false),
        ("no_customer", "customer has no row [1, 4, 77]", false),
        ("no_stock_", "stock has no row [1, 9]", false),
        ("no_items", "item has no row", false),
        ("no_lines", "read the answers to what was committed: 0 of 5 lines", true),
    ] {
        let mut books = Books::of(&of(Face::Pipeline));
        books.lost = Some(lost);
        let order = order();
        let entered = enter_order(&mut books, Face::Pipeline, &order, NOW);
        let error = finish(entered).expect_err("must fail").to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(books.statements().contains(&"commit"), committed, "{lost}");
    }
    for (lost, part) in [
        ("pay_district", "read the answers to what was committed: district has no row [2, 5]"),
        ("pay_customer", "read the answers to what was committed: customer has no row [3, 6, 9]"),
    ] {
        let tpcc = of(Face::Pipeline);
        let mut books = Books::of(&tpcc);
        books.lost = Some(lost);
        let failed = finish(tpcc.perform(&mut books, &payment(Customer::Id(9)), NOW));
        let error = failed.expect_err("must fail");
        assert!(error.to_string().contains(part), "{error}");
        assert!(!error.is_retryable() && !error.is_closed());
    }
}

#[test]
fn a_procedure_that_left_a_line_out_for_no_reason_is_an_error() {
    let mut books = Books::of(&of(Face::Procedure));
    books.items = 50;
    let error = finish(enter_order(&mut books, Face::Procedure, &order(), NOW)).expect_err("60");
    assert!(error.to_string().contains("item or stock has no row [1, 60]"), "{error}");
}

#[test]
fn a_session_prepares_only_what_its_face_needs() {
    for (face, count, setup) in
        [(Face::Statement, 36, 0), (Face::Pipeline, 36, 0), (Face::Procedure, 5, 10)]
    {
        let tpcc = of(face);
        assert_eq!(tpcc.statements().len(), count);
        assert_eq!(tpcc.setup().len(), setup, "a check, and the functions in a transaction");
        assert_eq!(tpcc.particulars().procedures.len(), if setup == 0 { 0 } else { 5 });
    }
}

#[test]
fn a_call_gets_its_isolation_from_its_session() {
    for (isolation, settings) in
        [("read committed", 0), ("repeatable read", 1), ("serializable", 1)]
    {
        let tpcc = tpcc(json!({"face": "procedure", "isolation": isolation}));
        let told = tpcc.settings();
        assert_eq!(told.len(), settings, "{isolation}");
        assert!(told.iter().all(|(name, value)| {
            name == "default_transaction_isolation" && value == isolation
        }));
        assert!(tpcc.setup()[0].contains(&format!("<> '{isolation}'")));
        let own = super::tpcc(json!({"face": "pipeline", "isolation": isolation}));
        assert!(own.settings().is_empty(), "its BEGIN says it");
    }
}
