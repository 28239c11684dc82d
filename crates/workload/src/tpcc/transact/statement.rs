//! Face `statement`: one statement, one round trip.

use wire::{Answer, Error, Exchange, StatementId, Timestamp};

use super::{
    delivery::{self, outcome},
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

/// Sends what is queued and returns the answer to it.
async fn one<X: Exchange>(session: &mut X) -> Result<Answer<'_>, Error> {
    Ok(session.exchange().await?.get(0))
}

async fn bare<X: Exchange>(session: &mut X, statement: StatementId) -> Result<(), Error> {
    session.queue(statement, &[]);
    one(session).await.map(drop)
}

pub(super) async fn new_order<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    now: Timestamp,
) -> Result<NewOrderReply, Error> {
    let mut entry = Entry::new(order);
    bare(session, BEGIN).await?;
    entry.ask_warehouse(session);
    entry.read_warehouse(one(session).await?)?;
    entry.ask_district(session);
    entry.read_district(one(session).await?)?;
    entry.ask_customer(session);
    entry.read_customer(one(session).await?)?;
    entry.ask_items(session);
    entry.read_items(one(session).await?)?;
    let (places, count) = locking_order(order);
    for &place in &places[..count] {
        if entry.has_item(place)? {
            entry.ask_stock(session, place);
            entry.read_stock(place, one(session).await?)?;
        }
    }
    entry.ask_order(session, now);
    one(session).await?;
    entry.ask_new_order(session);
    one(session).await?;
    entry.ask_lines(session)?;
    entry.read_lines(one(session).await?)?;
    bare(session, if entry.is_to_roll_back() { ROLLBACK } else { COMMIT }).await?;
    Ok(entry.reply())
}

pub(super) async fn payment<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    payment: &Payment,
    now: Timestamp,
) -> Result<Outcome, Error> {
    bare(session, BEGIN).await?;
    payment::ask_warehouse(session, payment);
    // H_DATA: the names of warehouse and district, four spaces between them.
    let mut data = payment::read_warehouse(one(session).await?, payment)?.to_owned();
    data.push_str("    ");
    payment::ask_district(session, payment);
    data.push_str(payment::read_district(one(session).await?, payment)?);

    let id = match payment.customer {
        Customer::Id(id) => id,
        Customer::LastName(name) => {
            let name = names.get(name);
            payment::ask_names(session, payment, name);
            payment::read_names(one(session).await?, payment, name)?
        }
    };
    payment::ask_customer(session, payment, id);
    payment::read_customer(one(session).await?, payment, id)?;
    payment::ask_history(session, payment, id, now, Some(&data));
    one(session).await?;
    bare(session, COMMIT).await?;
    Ok(Outcome::Committed)
}

pub(super) async fn order_status<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    status: &OrderStatus,
) -> Result<Outcome, Error> {
    bare(session, BEGIN_SNAPSHOT).await?;
    let id = match status.customer {
        Customer::Id(id) => {
            order_status::ask_customer(session, status, id);
            order_status::read_customer(one(session).await?, status, id)?;
            id
        }
        Customer::LastName(name) => {
            let name = names.get(name);
            order_status::ask_names(session, status, name);
            order_status::read_names(one(session).await?, status, name)?
        }
    };
    order_status::ask_order(session, status, id);
    let order = order_status::read_order(one(session).await?, status, id)?;
    order_status::ask_lines(session, status, order);
    order_status::read_lines(one(session).await?, status, order)?;
    bare(session, COMMIT).await?;
    Ok(Outcome::Committed)
}

pub(super) async fn delivery<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    now: Timestamp,
) -> Result<Outcome, Error> {
    bare(session, BEGIN).await?;
    let mut skipped = 0;
    for district in 1..=DISTRICTS {
        delivery::ask_oldest(session, delivery, district);
        let Some(mut parcel) = delivery::read_oldest(one(session).await?, district)? else {
            skipped += 1;
            continue;
        };
        parcel.ask_order(session, delivery);
        parcel.read_order(one(session).await?, delivery)?;
        parcel.ask_lines(session, delivery, now);
        parcel.read_lines(one(session).await?, delivery)?;
        parcel.ask_customer(session, delivery);
        parcel.read_customer(one(session).await?, delivery)?;
    }
    bare(session, COMMIT).await?;
    Ok(outcome(skipped))
}

pub(super) async fn stock_level<X: Exchange>(
    session: &mut X,
    level: &StockLevel,
) -> Result<Outcome, Error> {
    bare(session, BEGIN).await?;
    stock_level::ask_district(session, level);
    let next = stock_level::read_district(one(session).await?, level)?;
    stock_level::ask_count(session, level, next);
    stock_level::read_count(one(session).await?, level)?;
    bare(session, COMMIT).await?;
    Ok(Outcome::Committed)
}
