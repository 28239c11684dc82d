//! Rules `benchmarksql-5`: the transactions of `BenchmarkSQL` 5, statement by statement, with the
//! faults that shape its load. What is asked for, by whom and when is the text's: see
//! [`super::input`].

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod session;
pub mod statements;
mod stock_level;

use wire::{Error, Exchange, Timestamp};

use super::{input::Request, names::LastNames};
use crate::workload::Outcome;

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

/// Sends the statements of a request, from BEGIN to COMMIT or ROLLBACK, as `BenchmarkSQL` does.
pub(super) async fn by_kind<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    request: &Request,
    now: Timestamp,
) -> Result<Outcome, Error> {
    match request {
        Request::NewOrder(order) => new_order::new_order(session, order, now).await,
        Request::Payment(payment) => payment::payment(session, names, payment, now).await,
        Request::OrderStatus(status) => order_status::order_status(session, names, status).await,
        Request::Delivery(delivery) => delivery::delivery(session, delivery, now).await,
        Request::StockLevel(level) => stock_level::stock_level(session, level).await,
    }
}
