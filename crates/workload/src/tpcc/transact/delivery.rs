//! Delivery (clause 2.7.4): the oldest undelivered order of each of the ten districts, in one
//! transaction, which clause 2.7.4.1 permits.

use wire::{Decimal, Error, Exchange, Param, Timestamp};

use super::{ask, missing, required};
use crate::{
    Outcome,
    tpcc::{
        input::Delivery,
        schema::DISTRICTS,
        statements::{BEGIN, COMMIT, DEL_CUSTOMER, DEL_LINES, DEL_NEW_ORDER, DEL_ORDER},
    },
};

pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    now: Timestamp,
) -> Result<Outcome, Error> {
    ask(session, BEGIN, &[]).await?;
    let mut skipped = 0;
    for district in 1..=DISTRICTS {
        let key = [delivery.warehouse, district].map(Param::I32);
        let answer = ask(session, DEL_NEW_ORDER, &key).await?;
        match answer.row(0).map(|row| row.i32(0)).transpose()? {
            Some(order) => deliver(session, delivery, district, order, now).await?,
            None => skipped += 1,
        }
    }
    ask(session, COMMIT, &[]).await?;
    Ok(if skipped == 0 { Outcome::Committed } else { Outcome::CommittedInPart { skipped } })
}

async fn deliver<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    district: i32,
    order: i32,
    now: Timestamp,
) -> Result<(), Error> {
    let warehouse = delivery.warehouse;
    let key = [warehouse, district, order];
    let [w, d, o] = key.map(Param::I32);
    let answer = ask(session, DEL_ORDER, &[w, d, o, Param::I32(delivery.carrier)]).await?;
    let customer = required(answer, "orders", &key)?.i32(0)?;

    let answer = ask(session, DEL_LINES, &[w, d, o, Param::Timestamp(now)]).await?;
    let row = required(answer, "order_line", &key)?;
    // The sum over no line at all is NULL.
    let sum: Decimal = match row.bytes(0)? {
        Some(_) => row.decimal(0)?,
        None => return Err(missing("order_line", &key)),
    };

    let params = [w, d, Param::I32(customer), Param::Decimal(sum)];
    let updated = ask(session, DEL_CUSTOMER, &params).await?.affected();
    if updated == 1 { Ok(()) } else { Err(missing("customer", &[warehouse, district, customer])) }
}
