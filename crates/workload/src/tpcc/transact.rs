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

use wire::{Error, Exchange, Timestamp};

use super::{
    input::{NewOrder, Request},
    names::LastNames,
    spec::Face,
};
use crate::workload::Outcome;

/// Sends the statements of a request, from BEGIN to COMMIT or ROLLBACK, through a face.
pub(super) async fn by_face<X: Exchange>(
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
/// As [`crate::workload::Workload::perform`].
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
