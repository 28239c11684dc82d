//! The five transactions over a session: face `statement`, one round trip for each statement.
//!
//! What the text wants returned to the terminal is fetched and decoded, and handed back as a reply,
//! though no screen shows it. A state that the data cannot have is an error, never a guess.

mod delivery;
mod new_order;
mod order_status;
mod payment;
mod stock_level;

pub use new_order::{NewOrderReply, ReplyLine};

use wire::{Answer, Error, Exchange, Param, Row, StatementId, Timestamp};

use super::{input::Request, names::LastNames};
use crate::Outcome;

/// Performs a request from BEGIN to COMMIT or ROLLBACK.
pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    request: &Request,
    now: Timestamp,
) -> Result<Outcome, Error> {
    match request {
        Request::NewOrder(order) => {
            let reply = new_order::perform(session, order, now).await?;
            Ok(if reply.rolled_back { Outcome::RolledBack } else { Outcome::Committed })
        }
        Request::Payment(payment) => payment::perform(session, names, payment, now).await,
        Request::OrderStatus(status) => order_status::perform(session, names, status).await,
        Request::Delivery(delivery) => delivery::perform(session, delivery, now).await,
        Request::StockLevel(level) => stock_level::perform(session, level).await,
    }
}

/// Enters an order and returns what its terminal would show.
///
/// # Errors
///
/// As [`crate::Workload::perform`].
pub async fn enter_order<X: Exchange>(
    session: &mut X,
    order: &super::input::NewOrder,
    now: Timestamp,
) -> Result<NewOrderReply, Error> {
    new_order::perform(session, order, now).await
}

/// One execution, one round trip.
async fn ask<'a, X: Exchange>(
    session: &'a mut X,
    statement: StatementId,
    params: &[Param<'_>],
) -> Result<Answer<'a>, Error> {
    session.queue(statement, params);
    Ok(session.exchange().await?.get(0))
}

/// The row that must be there, named by the table and its key.
fn required<'a>(answer: Answer<'a>, table: &str, key: &[i32]) -> Result<Row<'a>, Error> {
    answer.row(0).ok_or_else(|| missing(table, key))
}

fn missing(table: &str, key: &[i32]) -> Error {
    Error::protocol(format!(
        "{table} has no row {key:?}: the database was loaded with fewer warehouses than the plan \
         says, or was changed by others"
    ))
}

/// Customers of one last name: the row at position n/2, rounded up (clause 2.5.2.2, case 2).
fn middle(answer: Answer<'_>) -> Option<Row<'_>> {
    answer.row(answer.len().div_ceil(2).checked_sub(1)?)
}

/// Reads columns that a terminal would show and nothing here needs.
fn shown(row: Row<'_>, columns: std::ops::Range<usize>) -> Result<(), Error> {
    for column in columns {
        row.text(column)?;
    }
    Ok(())
}
