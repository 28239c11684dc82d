//! Face `pipeline`: the statements of face `statement` in as few round trips as their data
//! dependencies allow. What an exchange carries is performed in order; after an error the server
//! skips the rest, a COMMIT above all.
//!
//! Where the last exchange carries the COMMIT, its answers are read when it has happened: the
//! database then lacks a row that it cannot lack, the request fails, and its error says that it was
//! committed.

use wire::{Answers, Error, Exchange, Timestamp};

use super::{
    delivery::{self, Parcel, outcome},
    new_order::{Entry, NewOrderReply, locking_order},
    order_status, payment, stock_level,
};
use crate::{
    tpcc::{
        cardinalities::DISTRICTS,
        input::{Customer, Delivery, NewOrder, OrderStatus, Payment, StockLevel},
        names::LastNames,
        statements::{BEGIN, BEGIN_SNAPSHOT, COMMIT, ROLLBACK},
    },
    workload::Outcome,
};

/// Answers of an exchange that committed.
fn after_commit(read: Result<(), Error>) -> Result<(), Error> {
    read.map_err(|error| error.while_doing("read the answers to what was committed"))
}

/// Takes the stock of every line before it is known which items exist: of an unused item there is
/// no stock, and its statement finds nothing.
pub(super) async fn new_order<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    now: Timestamp,
) -> Result<NewOrderReply, Error> {
    let mut entry = Entry::new(order);
    session.queue(BEGIN, &[]);
    entry.ask_warehouse(session);
    entry.ask_district(session);
    entry.ask_customer(session);
    entry.ask_items(session);
    let (places, count) = locking_order(order);
    for &place in &places[..count] {
        entry.ask_stock(session, place);
    }
    let answers = session.exchange().await?;
    entry.read_warehouse(answers.get(1))?;
    entry.read_district(answers.get(2))?;
    entry.read_customer(answers.get(3))?;
    entry.read_items(answers.get(4))?;
    for (n, &place) in places[..count].iter().enumerate() {
        entry.read_stock(place, answers.get(5 + n))?;
    }

    entry.ask_order(session, now);
    entry.ask_new_order(session);
    entry.ask_lines(session)?;
    session.queue(if entry.is_to_roll_back() { ROLLBACK } else { COMMIT }, &[]);
    let answers = session.exchange().await?;
    after_commit(entry.read_lines(answers.get(2)))?;
    Ok(entry.reply())
}

/// By number everything travels at once. By name the names are read first, before anything is
/// locked, and the rest travels at once.
pub(super) async fn payment<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    payment: &Payment,
    now: Timestamp,
) -> Result<Outcome, Error> {
    session.queue(BEGIN, &[]);
    let (id, first) = match payment.customer {
        Customer::Id(id) => (id, 1),
        Customer::LastName(name) => {
            let name = names.get(name);
            payment::ask_names(session, payment, name);
            let id = payment::read_names(session.exchange().await?.get(1), payment, name)?;
            (id, 0)
        }
    };
    payment::ask_warehouse(session, payment);
    payment::ask_district(session, payment);
    payment::ask_customer(session, payment, id);
    payment::ask_history(session, payment, id, now, None);
    session.queue(COMMIT, &[]);
    let answers = session.exchange().await?;
    let read = |answers: &Answers| {
        payment::read_warehouse(answers.get(first), payment)?;
        payment::read_district(answers.get(first + 1), payment)?;
        payment::read_customer(answers.get(first + 2), payment, id)
    };
    after_commit(read(answers))?;
    Ok(Outcome::Committed)
}

pub(super) async fn order_status<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    status: &OrderStatus,
) -> Result<Outcome, Error> {
    session.queue(BEGIN_SNAPSHOT, &[]);
    let (id, order) = match status.customer {
        Customer::Id(id) => {
            order_status::ask_customer(session, status, id);
            order_status::ask_order(session, status, id);
            let answers = session.exchange().await?;
            order_status::read_customer(answers.get(1), status, id)?;
            (id, answers.get(2))
        }
        Customer::LastName(name) => {
            let name = names.get(name);
            order_status::ask_names(session, status, name);
            let id = order_status::read_names(session.exchange().await?.get(1), status, name)?;
            order_status::ask_order(session, status, id);
            (id, session.exchange().await?.get(0))
        }
    };
    let order = order_status::read_order(order, status, id)?;
    order_status::ask_lines(session, status, order);
    session.queue(COMMIT, &[]);
    order_status::read_lines(session.exchange().await?.get(0), status, order)?;
    Ok(Outcome::Committed)
}

/// All districts' orders; then their carriers and lines; then the customers.
pub(super) async fn delivery<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    now: Timestamp,
) -> Result<Outcome, Error> {
    session.queue(BEGIN, &[]);
    for district in 1..=DISTRICTS {
        delivery::ask_oldest(session, delivery, district);
    }
    let mut parcels = [None; DISTRICTS.unsigned_abs() as usize];
    let answers = session.exchange().await?;
    for ((parcel, district), n) in parcels.iter_mut().zip(1..=DISTRICTS).zip(1..) {
        *parcel = delivery::read_oldest(answers.get(n), district)?;
    }

    let mut queued = 0;
    for parcel in parcels.iter().flatten() {
        parcel.ask_order(session, delivery);
        parcel.ask_lines(session, delivery, now);
        queued += 1;
    }
    if queued > 0 {
        read_parcels(session.exchange().await?, &mut parcels, delivery)?;
    }

    for parcel in parcels.iter().flatten() {
        parcel.ask_customer(session, delivery);
    }
    session.queue(COMMIT, &[]);
    let answers = session.exchange().await?;
    let mut paying = parcels.iter().flatten().enumerate();
    after_commit(
        paying.try_for_each(|(n, parcel)| parcel.read_customer(answers.get(n), delivery)),
    )?;
    Ok(outcome(DISTRICTS.unsigned_abs() - queued))
}

fn read_parcels(
    answers: &Answers,
    parcels: &mut [Option<Parcel>],
    delivery: &Delivery,
) -> Result<(), Error> {
    for (n, parcel) in parcels.iter_mut().flatten().enumerate() {
        parcel.read_order(answers.get(2 * n), delivery)?;
        parcel.read_lines(answers.get(2 * n + 1), delivery)?;
    }
    Ok(())
}

pub(super) async fn stock_level<X: Exchange>(
    session: &mut X,
    level: &StockLevel,
) -> Result<Outcome, Error> {
    session.queue(BEGIN, &[]);
    stock_level::ask_district(session, level);
    let next = stock_level::read_district(session.exchange().await?.get(1), level)?;
    stock_level::ask_count(session, level, next);
    session.queue(COMMIT, &[]);
    stock_level::read_count(session.exchange().await?.get(0), level)?;
    Ok(Outcome::Committed)
}
