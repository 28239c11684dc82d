//! The five transactions over a session, through three faces.
//!
//! What is asked and what the answers mean stands once for each transaction; a face says what
//! travels together. What the text wants returned to the terminal is fetched and decoded, and
//! handed back as a reply, though no screen shows it. A state that the data cannot have is an
//! error, never a guess.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod pipeline;
mod procedure;
mod statement;
mod stock_level;

pub(super) use new_order::locking_order;
pub use new_order::{NewOrderReply, ReplyLine};

use wire::{Answer, Error, Exchange, Fields, Param, Row, StatementId, Timestamp};

use super::{
    input::{NewOrder, Request},
    names::LastNames,
    spec::Face,
};
use crate::Outcome;

/// Performs a request from BEGIN to COMMIT or ROLLBACK.
pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    face: Face,
    names: &LastNames,
    request: &Request,
    now: Timestamp,
) -> Result<Outcome, Error> {
    match face {
        Face::Statement => match request {
            Request::NewOrder(order) => {
                statement::new_order(session, order, now).await.map(|r| entered(&r))
            }
            Request::Payment(payment) => statement::payment(session, names, payment, now).await,
            Request::OrderStatus(status) => statement::order_status(session, names, status).await,
            Request::Delivery(delivery) => statement::delivery(session, delivery, now).await,
            Request::StockLevel(level) => statement::stock_level(session, level).await,
        },
        Face::Pipeline => match request {
            Request::NewOrder(order) => {
                pipeline::new_order(session, order, now).await.map(|r| entered(&r))
            }
            Request::Payment(payment) => pipeline::payment(session, names, payment, now).await,
            Request::OrderStatus(status) => pipeline::order_status(session, names, status).await,
            Request::Delivery(delivery) => pipeline::delivery(session, delivery, now).await,
            Request::StockLevel(level) => pipeline::stock_level(session, level).await,
        },
        Face::Procedure => match request {
            Request::NewOrder(order) => {
                procedure::new_order(session, order, now).await.map(|r| entered(&r))
            }
            Request::Payment(payment) => procedure::payment(session, names, payment, now).await,
            Request::OrderStatus(status) => procedure::order_status(session, names, status).await,
            Request::Delivery(delivery) => procedure::delivery(session, delivery, now).await,
            Request::StockLevel(level) => procedure::stock_level(session, level).await,
        },
    }
}

fn entered(reply: &NewOrderReply) -> Outcome {
    if reply.rolled_back { Outcome::RolledBack } else { Outcome::Committed }
}

/// Enters an order and returns what its terminal would show.
///
/// # Errors
///
/// As [`crate::Workload::perform`].
pub async fn enter_order<X: Exchange>(
    session: &mut X,
    face: Face,
    order: &NewOrder,
    now: Timestamp,
) -> Result<NewOrderReply, Error> {
    match face {
        Face::Statement => statement::new_order(session, order, now).await,
        Face::Pipeline => pipeline::new_order(session, order, now).await,
        Face::Procedure => procedure::new_order(session, order, now).await,
    }
}

/// One execution, one round trip.
pub(super) async fn ask<'a, X: Exchange>(
    session: &'a mut X,
    statement: StatementId,
    params: &[Param<'_>],
) -> Result<Answer<'a>, Error> {
    session.queue(statement, params);
    Ok(session.exchange().await?.get(0))
}

/// The row that must be there, named by the table and its key.
pub(super) fn required<'a>(answer: Answer<'a>, table: &str, key: &[i32]) -> Result<Row<'a>, Error> {
    answer.row(0).ok_or_else(|| missing(table, key))
}

pub(super) fn missing(table: &str, key: &[i32]) -> Error {
    Error::protocol(format!(
        "{table} has no row {key:?}: the database was loaded with fewer warehouses than the plan \
         says, or was changed by others"
    ))
}

/// Customers of one last name: the row at position n/2, rounded up (clause 2.5.2.2, case 2).
pub(super) fn middle(answer: Answer<'_>) -> Option<Row<'_>> {
    answer.row(answer.len().div_ceil(2).checked_sub(1)?)
}

/// Reads columns that a terminal would show and nothing here needs.
pub(super) fn shown(row: Row<'_>, columns: std::ops::Range<usize>) -> Result<(), Error> {
    let mut fields = row.fields();
    for _ in 0..columns.start {
        fields.bytes()?;
    }
    texts(&mut fields, columns.len())
}

/// As [`shown`], of the fields that come next.
fn texts(fields: &mut Fields<'_>, count: usize) -> Result<(), Error> {
    for _ in 0..count {
        fields.text()?;
    }
    Ok(())
}
