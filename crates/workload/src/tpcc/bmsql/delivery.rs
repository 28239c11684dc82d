//! Delivery: 71 exchanges where every district has an order. All undelivered orders of a district
//! are fetched to deliver the first: 900 right after the load, and more as the run goes on.

use wire::{Answer, Error, Exchange, Param, Timestamp};

use super::statements::{
    BEGIN, COMMIT, DEL_CUSTOMER, DEL_LINES, DEL_NEW_ORDERS, DEL_ORDER, DEL_ORDER_READ, DEL_SUM,
    DEL_TAKE,
};
use crate::{
    tpcc::{
        answers::{ask, missing, required},
        cardinalities::DISTRICTS,
        input::Delivery,
    },
    workload::Outcome,
};

pub(super) async fn delivery<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let mut skipped = 0;
    // Travels with the first query.
    session.queue(BEGIN, &[]);
    let mut begun = 1;
    for district in 1..=DISTRICTS {
        match oldest(session, delivery.warehouse, district, begun).await? {
            Some(order) => deliver(session, delivery, district, order, now).await?,
            None => skipped += 1,
        }
        begun = 0;
    }
    ask(session, COMMIT, &[]).await?;
    Ok(if skipped == 0 { Outcome::Committed } else { Outcome::CommittedInPart { skipped } })
}

/// Takes the oldest undelivered order; if another Delivery took it in the meantime, looks again,
/// which sees the change at READ COMMITTED only. `before`: executions that are queued already.
async fn oldest<X: Exchange>(
    session: &mut X,
    warehouse: i32,
    district: i32,
    before: usize,
) -> Result<Option<i32>, Error> {
    let [w, d] = [warehouse, district].map(Param::I32);
    let mut position = before;
    loop {
        session.queue(DEL_NEW_ORDERS, &[w, d]);
        let Some(order) = first(session.exchange().await?.get(position))? else {
            return Ok(None);
        };
        if ask(session, DEL_TAKE, &[w, d, Param::I32(order)]).await?.affected() > 0 {
            return Ok(Some(order));
        }
        position = 0;
    }
}

/// The first of all orders that were fetched.
fn first(answer: Answer<'_>) -> Result<Option<i32>, Error> {
    answer.row(0).map(|row| row.i32(0)).transpose()
}

async fn deliver<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    district: i32,
    order: i32,
    now: Timestamp,
) -> Result<(), Error> {
    let key = [delivery.warehouse, district, order];
    let [w, d, o] = key.map(Param::I32);
    ask(session, DEL_ORDER, &[Param::I32(delivery.carrier), w, d, o]).await?;
    let answer = ask(session, DEL_ORDER_READ, &[w, d, o]).await?;
    let customer = required(answer, "bmsql_oorder", &key)?.i32(0)?;

    ask(session, DEL_LINES, &[Param::Timestamp(now), w, d, o]).await?;
    let row = required(ask(session, DEL_SUM, &[w, d, o]).await?, "bmsql_order_line", &key)?;
    // The sum over no line at all is NULL, which the data cannot have.
    if row.bytes(0)?.is_none() {
        return Err(missing("bmsql_order_line", &key));
    }
    let sum = Param::F64(super::session::double(row.decimal(0)?));
    ask(session, DEL_CUSTOMER, &[sum, w, d, Param::I32(customer)]).await?;
    Ok(())
}
