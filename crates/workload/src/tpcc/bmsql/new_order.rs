//! New-Order: 8 exchanges and two for each line, of which there are ten on average. What is written
//! to stock and lines is collected and sent at the end, in two exchanges of many executions, as
//! JDBC's `executeBatch` does.

use wire::{Error, Exchange, Param, Timestamp};

use super::{
    session::{begin, double},
    statements::{
        COMMIT, NO_CUSTOMER, NO_DISTRICT, NO_ITEM, NO_LINE, NO_NEW_ORDER, NO_ORDER, NO_STOCK,
        NO_TAKE_NUMBER, NO_TAKE_STOCK, ROLLBACK,
    },
};
use crate::{
    tpcc::{
        answers::{ask, missing, required, shown},
        cardinalities::UNUSED_ITEM,
        input::{LINES_MAX, Line, NewOrder},
        transact::locking_order,
    },
    workload::Outcome,
};

/// First of the ten columns `s_dist_01` to `s_dist_10`.
const FIRST_INFO: usize = 2;
/// A stock that would fall below this is filled up.
const LOW: i32 = 10;
const FILL: i32 = 91;

/// A line that can be written.
#[derive(Clone, Debug)]
struct Entered {
    line: Line,
    /// The new `S_QUANTITY`.
    stock: i32,
    amount: f64,
    info: String,
}

pub(super) async fn new_order<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let number = head(session, order, now).await?;
    let mut entered = Vec::with_capacity(LINES_MAX);
    let (places, count) = locking_order(order);
    let mut unused = false;
    for &place in &places[..count] {
        let line = order.lines()[place];
        if let Some(line) = enter(session, order, line).await? {
            entered.push(line);
        } else {
            // The work so far is done before the rollback (clause 2.4.2.3); lines that come later
            // in the locking order are not looked at.
            unused = true;
            break;
        }
    }
    if unused {
        write_lines(session, order, number, &entered).await?;
        write_stock(session, order, &entered).await?;
        ask(session, ROLLBACK, &[]).await?;
        return Ok(Outcome::RolledBack);
    }
    write_stock(session, order, &entered).await?;
    write_lines(session, order, number, &entered).await?;
    ask(session, COMMIT, &[]).await?;
    Ok(Outcome::Committed)
}

/// Everything before the lines; returns the order's number.
async fn head<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    now: Timestamp,
) -> Result<i32, Error> {
    let key = [order.warehouse, order.district, order.customer];
    let [w, d, c] = key.map(Param::I32);
    let answer = begin(session, NO_DISTRICT, &[w, d]).await?;
    let row = required(answer, "bmsql_district", &key[..2])?;
    row.decimal(0)?;
    let number = row.i32(1)?;

    let answer = ask(session, NO_CUSTOMER, &[w, d, c]).await?;
    let row = required(answer, "bmsql_customer", &key)?;
    row.decimal(0)?;
    shown(row, 1..3)?;
    row.decimal(3)?;

    ask(session, NO_TAKE_NUMBER, &[w, d]).await?;
    let o = Param::I32(number);
    let lines = order.lines();
    let count = Param::I32(i32::try_from(lines.len()).unwrap_or(i32::MAX));
    let local = Param::I32(i32::from(lines.iter().all(|line| line.supply == order.warehouse)));
    ask(session, NO_ORDER, &[o, d, w, c, Param::Timestamp(now), count, local]).await?;
    ask(session, NO_NEW_ORDER, &[o, d, w]).await?;
    Ok(number)
}

/// Reads item and stock of a line; none if there is no such item.
async fn enter<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    line: Line,
) -> Result<Option<Entered>, Error> {
    let Line { item, supply, quantity } = line;
    let answer = ask(session, NO_ITEM, &[Param::I32(item)]).await?;
    let Some(row) = answer.row(0) else {
        return if item == UNUSED_ITEM { Ok(None) } else { Err(missing("bmsql_item", &[item])) };
    };
    let price = double(row.decimal(0)?);
    shown(row, 1..3)?;

    let key = [supply, item];
    let answer = ask(session, NO_STOCK, &key.map(Param::I32)).await?;
    let row = required(answer, "bmsql_stock", &key)?;
    let old = row.i32(0)?;
    row.text(1)?;
    let column = FIRST_INFO + usize::try_from(order.district - 1).unwrap_or(0);
    Ok(Some(Entered {
        line,
        stock: if old >= quantity + LOW { old - quantity } else { old + FILL },
        amount: price * f64::from(quantity),
        info: row.text(column)?.to_owned(),
    }))
}

async fn write_stock<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    entered: &[Entered],
) -> Result<(), Error> {
    if entered.is_empty() {
        return Ok(());
    }
    for Entered { line: Line { item, supply, quantity }, stock, .. } in entered {
        let remote = i32::from(*supply != order.warehouse);
        session.queue(NO_TAKE_STOCK, &[*stock, *quantity, remote, *supply, *item].map(Param::I32));
    }
    session.exchange().await?;
    Ok(())
}

/// `OL_NUMBER` is the place in the locking order, not that at which the user entered the line.
async fn write_lines<X: Exchange>(
    session: &mut X,
    order: &NewOrder,
    number: i32,
    entered: &[Entered],
) -> Result<(), Error> {
    if entered.is_empty() {
        return Ok(());
    }
    for (place, Entered { line, amount, info, .. }) in (1..).zip(entered) {
        let params = [
            Param::I32(number),
            Param::I32(order.district),
            Param::I32(order.warehouse),
            Param::I32(place),
            Param::I32(line.item),
            Param::I32(line.supply),
            Param::I32(line.quantity),
            Param::F64(*amount),
            Param::Text(info),
        ];
        session.queue(NO_LINE, &params);
    }
    session.exchange().await?;
    Ok(())
}
