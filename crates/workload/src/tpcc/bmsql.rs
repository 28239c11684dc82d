//! Rules `benchmarksql-5`: the transactions of `BenchmarkSQL` 5, statement by statement, with the
//! faults that shape its load. What is asked for, by whom and when is the text's: see
//! [`super::input`].

mod delivery;
mod new_order;
mod order_status;
mod payment;
pub mod statements;
mod stock_level;

use wire::{Answer, Decimal, Error, Exchange, Param, StatementId, Timestamp};

use super::{
    SpecError, TpccSpec,
    faces::{RoundTrips, trips},
    input::Request,
    names::LastNames,
    spec::{DeliveryMode, Face, Isolation, Schema},
};
use crate::Outcome;
use statements::BEGIN;

/// Fewest and most round trips, in the order of the kinds: of an order of five lines, the first of
/// which in the order of locks is the unused item, and of one of fifteen; of districts without an
/// order, and of ten that have one which nobody else takes first.
pub(super) const ROUND_TRIPS: [RoundTrips; 5] =
    [trips(7, 38), trips(8, 10), trips(4, 5), trips(11, 71), trips(2, 2)];

/// What the schema has otherwise than the text, why, and the clause.
pub(super) const OF_SCHEMA: [(&str, &str, &str); 2] = [
    (
        "fault bmsql-carrier-index: the secondary index of the orders is on O_CARRIER_ID, not on \
         O_C_ID; a customer's last order is looked for among all orders of the district, and every \
         delivery changes an indexed column",
        "BenchmarkSQL 5 has it, and its results are compared",
        "2.6.2.2, 2.7.4.2",
    ),
    (
        "columns that are no key may be NULL, histories are numbered by a column hist_id, sums are \
         numeric(12,2) and overflow at 10^10",
        "either program runs on what the other loaded",
        "1.3.1, 1.4",
    ),
];

/// What the transactions do otherwise than the text, why, and the clause.
pub(super) const OF_RULES: [(&str, &str, &str); 5] = [
    (
        "fault bmsql-delivery-without-limit: a Delivery fetches all undelivered orders of a \
         district to deliver the oldest, 900 right after the load and more as the run goes on",
        "BenchmarkSQL 5 does so, and its results are compared",
        "2.7.4.2",
    ),
    (
        "fault bmsql-stock-91: a stock that would fall below 10 rises by 91, and what is ordered \
         is not taken from it; of an item that is ordered twice in one order, the first is not \
         taken",
        "as above",
        "2.4.2.2",
    ),
    (
        "a New-Order with an unused item does not process the lines that come after it in the \
         order of locks",
        "as above",
        "2.4.2.3",
    ),
    (
        "Payment takes the district before the warehouse; amounts travel as float8",
        "as above",
        "2.5.2.2",
    ),
    (
        "transactions run at READ COMMITTED, and each query of Order-Status sees a snapshot of its \
         own",
        "as above; rows that are read and then written are locked by the read",
        "3.4",
    ),
];

/// Performs a request from BEGIN to COMMIT or ROLLBACK.
pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    request: &Request,
    now: Timestamp,
) -> Result<Outcome, Error> {
    match request {
        Request::NewOrder(order) => new_order::perform(session, order, now).await,
        Request::Payment(payment) => payment::perform(session, names, payment, now).await,
        Request::OrderStatus(status) => order_status::perform(session, names, status).await,
        Request::Delivery(delivery) => delivery::perform(session, delivery, now).await,
        Request::StockLevel(level) => stock_level::perform(session, level).await,
    }
}

/// Opens a transaction with its first statement: JDBC's driver sends both at once.
async fn begin<'a, X: Exchange>(
    session: &'a mut X,
    statement: StatementId,
    params: &[Param<'_>],
) -> Result<Answer<'a>, Error> {
    session.queue(BEGIN, &[]);
    session.queue(statement, params);
    Ok(session.exchange().await?.get(1))
}

/// As JDBC's `getDouble` reads a `numeric`.
#[expect(clippy::cast_precision_loss, reason = "amounts have far fewer than 53 bits")]
fn double(value: Decimal) -> f64 {
    value.unscaled as f64 / 10_f64.powi(i32::from(value.scale))
}

/// Refuses what `BenchmarkSQL` 5 does not do.
pub(super) fn check(spec: &TpccSpec) -> Result<(), SpecError> {
    let wrong = [
        (spec.schema != Schema::Bmsql, "schema is spec", "schema bmsql"),
        (spec.face != Face::Statement, "face is not statement", "face statement"),
        (
            spec.isolation != Isolation::ReadCommitted,
            "isolation is not read committed",
            "isolation read committed",
        ),
        (spec.delivery != DeliveryMode::Inline, "delivery is deferred", "delivery inline"),
    ];
    match wrong.iter().find(|(is_wrong, ..)| *is_wrong) {
        None => Ok(()),
        Some((_, what, right)) => {
            let fact = format!("rules is benchmarksql-5, but {what}");
            Err(SpecError::new(fact, &format!("BenchmarkSQL 5 has {right}; say so.")))
        }
    }
}
