//! Errors and losses in the middle of what travels together: what is sent again, and whose fate is
//! unknown. TPC-C's faces `pipeline` and `procedure` against a scripted server.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::collections::HashMap;

use drive::{
    clock::TokioClock,
    connection::retry::{Ending, Repetition, until_done},
    measure::statements::{Groups, Laps, Stopwatch},
};
use serde_json::json;
use sim::{Call, Scripted, Step, serve};
use wire::{Session, Target, Timestamp};
use workload::{
    Outcome, Workload,
    plausible::{Bound, Plausible},
    tpcc::{
        Tpcc,
        input::{Customer, Delivery, Line, NewOrder, Payment, Request},
    },
};

fn tpcc(face: &str) -> Tpcc {
    Tpcc::from_spec(&json!({"kind": "tpcc", "face": face})).unwrap()
}

fn payment() -> Request {
    Request::Payment(Payment {
        warehouse: 1,
        district: 2,
        customer_warehouse: 1,
        customer_district: 2,
        customer: Customer::Id(3),
        amount_cents: 1234,
    })
}

fn new_order() -> Request {
    let line = Line { item: 7, supply: 1, quantity: 5 };
    Request::NewOrder(NewOrder::new(1, 2, 3, &[line; 5]))
}

/// Answers plausibly, but the first time that the SQL begins with `word`, with these steps.
fn server(tpcc: &Tpcc, word: &'static str, steps: Vec<Step>) -> Scripted {
    let known: HashMap<String, Plausible> = tpcc
        .statements()
        .iter()
        .map(|statement| (statement.sql.clone(), tpcc.plausible(statement).unwrap()))
        .collect();
    let mut planned = Some(steps);
    Scripted::new(move |call: &Call| {
        if call.sql.starts_with(word)
            && let Some(steps) = planned.take()
        {
            return steps;
        }
        let Some(plausible) = known.get(&call.sql) else { return Vec::new() };
        let mut bound = Vec::new();
        for param in &call.params {
            let length = param.as_ref().map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap());
            bound.extend_from_slice(&length.to_be_bytes());
            bound.extend_from_slice(param.as_deref().unwrap_or_default());
        }
        let mut out = Vec::new();
        plausible.answer(Bound(&bound), &mut out);
        vec![Step::Raw(out)]
    })
}

struct Performed {
    ending: Ending,
    repeated: u64,
    usable: bool,
    /// First word of every statement that the server performed.
    words: Vec<String>,
}

impl Performed {
    fn count(&self, word: &str) -> usize {
        self.words.iter().filter(|found| *found == word).count()
    }

    /// SQLSTATE or what stands for it, whether the fate is unknown, whether the session is lost.
    fn failure(&self) -> (&str, bool, bool) {
        match &self.ending {
            Ending::Failed(failure) => (&failure.class, failure.unknown, failure.lost),
            Ending::Done(outcome) => panic!("{outcome:?}"),
        }
    }

    fn outcome(&self) -> Outcome {
        match &self.ending {
            Ending::Done(outcome) => *outcome,
            Ending::Failed(failure) => panic!("{failure:?}"),
        }
    }
}

async fn performed(
    tpcc: &Tpcc,
    request: &Request,
    word: &'static str,
    steps: Vec<Step>,
) -> Performed {
    let scripted = server(tpcc, word, steps);
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let _server = tokio::spawn(serve(theirs, scripted.clone()));
    let target = Target::new("/nowhere", 1, "tester", "db");
    let mut session = Session::start(ours, &target, tpcc.statements()).await.unwrap();
    let mut repeated = 0;
    let watch = Stopwatch {
        clock: &TokioClock::new(),
        groups: &Groups::new(tpcc.statements()),
        laps: &mut Laps::default(),
        slower: None,
    };
    let limits = Repetition { most: 3, ident: [0; 3] };
    let count = |_| repeated += 1;
    let (ending, _) =
        until_done(tpcc, &mut session, request, Timestamp(0), limits, watch, count).await;
    let first = |call: &Call| call.sql.split(' ').next().unwrap_or_default().to_owned();
    let words = scripted.log().calls().iter().map(first).collect();
    Performed { ending, repeated, usable: session.is_usable(), words }
}

#[tokio::test]
async fn an_error_in_the_middle_skips_the_commit_and_is_repeated() {
    for (sqlstate, request, word) in [
        ("40001", payment(), "UPDATE customer"),
        ("40P01", payment(), "UPDATE warehouse"),
        ("40001", new_order(), "UPDATE stock"),
        ("40001", new_order(), "INSERT INTO order_line"),
    ] {
        let steps = vec![Step::error(sqlstate, "scripted")];
        let done = performed(&tpcc("pipeline"), &request, word, steps).await;
        assert_eq!(done.outcome(), Outcome::Committed, "{word}");
        assert_eq!((done.repeated, done.usable), (1, true));
        let ends = [done.count("BEGIN"), done.count("ROLLBACK"), done.count("COMMIT")];
        assert_eq!(ends, [2, 1, 1], "{word}: {:?}", done.words);
    }
}

#[tokio::test]
async fn a_commit_that_fails_is_repeated_and_leaves_nothing_to_roll_back() {
    let steps = vec![Step::error("40001", "scripted")];
    let done = performed(&tpcc("pipeline"), &payment(), "COMMIT", steps).await;
    assert_eq!((done.outcome(), done.repeated), (Outcome::Committed, 1));
    assert_eq!([done.count("BEGIN"), done.count("COMMIT")], [2, 2]);
}

#[tokio::test]
async fn other_errors_fail_the_request_with_the_state_of_their_statement() {
    let steps = vec![Step::error("23502", "scripted")];
    let failed = performed(&tpcc("pipeline"), &payment(), "INSERT INTO history", steps).await;
    assert_eq!((failed.failure(), failed.usable), (("23502", false, false), true));
    assert_eq!(failed.words.last().map(String::as_str), Some("ROLLBACK"));
    assert_eq!(failed.count("COMMIT"), 0);
}

#[tokio::test]
async fn only_what_may_have_been_committed_is_unknown() {
    let delivery = Request::Delivery(Delivery { warehouse: 1, carrier: 2 });
    let fatal = || Step::fatal("57P01", "scripted");
    for (face, request, word, step, unknown) in [
        // The COMMIT had been sent, and nothing was heard of what came before it.
        ("pipeline", payment(), "UPDATE customer", Step::Close, true),
        ("pipeline", payment(), "COMMIT", Step::Close, true),
        ("pipeline", payment(), "COMMIT", fatal(), true),
        // The server ended the session before it came to the COMMIT.
        ("pipeline", payment(), "UPDATE customer", fatal(), false),
        // It had not been sent.
        ("pipeline", new_order(), "UPDATE stock", Step::Close, false),
        ("pipeline", delivery.clone(), "UPDATE orders", Step::Close, false),
        ("pipeline", delivery, "UPDATE customer", Step::Close, true),
        ("procedure", payment(), "SELECT * FROM pgdyno", Step::Close, true),
    ] {
        let lost = performed(&tpcc(face), &request, word, vec![step.clone()]).await;
        let expected = ("connection lost", unknown, true);
        assert_eq!((lost.failure(), lost.usable), (expected, false), "{word}, {step:?}");
        assert_eq!(lost.repeated, 0);
    }
}

#[tokio::test]
async fn a_call_that_failed_has_rolled_itself_back() {
    let steps = vec![Step::error("40001", "scripted")];
    let done = performed(&tpcc("procedure"), &new_order(), "CALL", steps).await;
    assert_eq!((done.outcome(), done.repeated), (Outcome::Committed, 1));
    assert_eq!(done.words, ["CALL", "CALL"]);

    let steps = vec![Step::error("P0002", "query returned no rows")];
    let failed = performed(&tpcc("procedure"), &payment(), "SELECT * FROM pgdyno", steps).await;
    assert_eq!(failed.failure(), ("P0002", false, false));
    assert_eq!(failed.words, ["SELECT"]);
}
