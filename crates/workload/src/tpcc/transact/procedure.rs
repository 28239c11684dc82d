//! Face `procedure`: one call, one round trip, one transaction; the work is done by the functions
//! of [`crate::tpcc::procedures`]. A row that must be there and is not is their error (P0002), so
//! nothing is committed then.

use wire::{Error, Exchange, Fields, Kind, Param, Timestamp};

use super::{
    delivery::outcome,
    new_order::{Entry, NewOrderReply, all_local, locking_order, number_of},
    order_status,
    payment::{amount, shown_customer},
};
use crate::tpcc::answers::{required, texts};
use crate::{
    tpcc::{
        input::{Customer, Delivery, LINES_MAX, NewOrder, OrderStatus, Payment, StockLevel},
        names::LastNames,
        procedures::{DELIVERY, NEW_ORDER, ORDER_STATUS, PAYMENT, STOCK_LEVEL},
    },
    workload::Outcome,
};

/// Number and last name, of which one is NULL.
fn called(customer: Customer, names: &LastNames) -> [Param<'_>; 2] {
    match customer {
        Customer::Id(id) => [Param::I32(id), Param::Null],
        Customer::LastName(name) => [Param::Null, Param::Text(names.get(name))],
    }
}

pub(super) async fn new_order<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    now: Timestamp,
) -> Result<NewOrderReply, Error> {
    ask_new_order(session, order, now);
    let mut entry = Entry::new(order);
    entry.read_all(session.exchange().await?.get(0))?;
    Ok(entry.reply())
}

/// The lines in locking order, each with its pass: the k-th line of an item has pass k.
fn ask_new_order<X: Exchange>(session: &mut X, order: &NewOrder, now: Timestamp) {
    let (places, count) = locking_order(order);
    let [mut numbers, mut items, mut supplies, mut quantities, mut passes] = [[0; LINES_MAX]; 5];
    let mut last_pass = 1;
    for (n, &place) in places[..count].iter().enumerate() {
        let line = order.lines()[place];
        numbers[n] = number_of(place);
        items[n] = line.item;
        supplies[n] = line.supply;
        quantities[n] = line.quantity;
        let again = n > 0 && (supplies[n - 1], items[n - 1]) == (line.supply, line.item);
        passes[n] = if again { passes[n - 1] + 1 } else { 1 };
        last_pass = last_pass.max(passes[n]);
    }
    let params = [
        Param::I32(order.warehouse),
        Param::I32(order.district),
        Param::I32(order.customer),
        Param::Timestamp(now),
        Param::I32(all_local(order)),
        Param::I32s(&numbers[..count]),
        Param::I32s(&items[..count]),
        Param::I32s(&supplies[..count]),
        Param::I32s(&quantities[..count]),
        Param::I32s(&passes[..count]),
        Param::I32(last_pass),
    ];
    session.queue(NEW_ORDER, &params);
}

pub(super) async fn payment<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    payment: &Payment,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let [id, name] = called(payment.customer, names);
    let params = [
        Param::I32(payment.warehouse),
        Param::I32(payment.district),
        Param::I32(payment.customer_warehouse),
        Param::I32(payment.customer_district),
        id,
        name,
        Param::Decimal(amount(payment)),
        Param::Timestamp(now),
    ];
    session.queue(PAYMENT, &params);
    let answer = session.exchange().await?.get(0);
    let mut fields = required(answer, "pgdyno_payment", &[])?.fields();
    // The two addresses.
    texts(&mut fields, 10)?;
    fields.i32()?;
    shown_customer(&mut fields)?;
    Ok(Outcome::Committed)
}

pub(super) async fn order_status<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    status: &OrderStatus,
) -> Result<Outcome, Error> {
    let [id, name] = called(status.customer, names);
    let place = [status.warehouse, status.district].map(Param::I32);
    session.queue(ORDER_STATUS, &[place[0], place[1], id, name]);
    let answer = session.exchange().await?.get(0);
    let mut fields = required(answer, "pgdyno_order_status", &[])?.fields();
    order_status::shown_customer(&mut fields)?;
    let order = order_status::shown_order(&mut fields)?;
    if shown_lines(&mut fields)? == 0 {
        return Err(crate::tpcc::answers::missing(
            "order_line",
            &[status.warehouse, status.district, order],
        ));
    }
    Ok(Outcome::Committed)
}

/// Items, suppliers, quantities, amounts and dates of delivery; how many lines they are.
fn shown_lines(fields: &mut Fields<'_>) -> Result<usize, Error> {
    let (count, mut items) = fields.array(Kind::I32)?;
    let (_, mut supplies) = fields.array(Kind::I32)?;
    let (_, mut quantities) = fields.array(Kind::I32)?;
    let (_, mut amounts) = fields.array(Kind::Decimal)?;
    let (_, mut dates) = fields.array(Kind::Timestamp)?;
    for _ in 0..count {
        for column in [&mut items, &mut supplies, &mut quantities] {
            column.i32()?;
        }
        amounts.decimal()?;
        dates.nullable(Fields::timestamp)?;
    }
    Ok(count)
}

pub(super) async fn delivery<X: Exchange>(
    session: &mut X,
    delivery: &Delivery,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let [w, carrier] = [delivery.warehouse, delivery.carrier].map(Param::I32);
    session.queue(DELIVERY, &[w, carrier, Param::Timestamp(now)]);
    let answer = session.exchange().await?.get(0);
    let skipped = required(answer, "pgdyno_delivery", &[])?.i32(0)?;
    let skipped = u32::try_from(skipped)
        .map_err(|_| Error::protocol(format!("{skipped} districts were skipped")))?;
    Ok(outcome(skipped))
}

pub(super) async fn stock_level<X: Exchange>(
    session: &mut X,
    level: &StockLevel,
) -> Result<Outcome, Error> {
    let StockLevel { warehouse, district, threshold } = *level;
    session.queue(STOCK_LEVEL, &[warehouse, district, threshold].map(Param::I32));
    let answer = session.exchange().await?.get(0);
    required(answer, "pgdyno_stock_level", &[])?.i64(0)?;
    Ok(Outcome::Committed)
}
