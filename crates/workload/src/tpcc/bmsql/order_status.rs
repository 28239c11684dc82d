//! Order-Status: 4 exchanges, one more for a last name. Each query sees a snapshot of its own.

use wire::{Error, Exchange, Param};

use super::{
    session::begin,
    statements::{NAMES, OS_CUSTOMER, OS_LINES, OS_ORDER, ROLLBACK},
};
use crate::{
    tpcc::{
        answers::{ask, middle, missing, required, shown},
        input::{Customer, OrderStatus},
        names::LastNames,
    },
    workload::Outcome,
};

pub(super) async fn order_status<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    status: &OrderStatus,
) -> Result<Outcome, Error> {
    let place = [status.warehouse, status.district];
    let [w, d] = place.map(Param::I32);
    let (id, answer) = match status.customer {
        Customer::Id(id) => (id, begin(session, OS_CUSTOMER, &[w, d, Param::I32(id)]).await?),
        Customer::LastName(name) => {
            let name = names.get(name);
            let answer = begin(session, NAMES, &[w, d, Param::Text(name)]).await?;
            let id = middle(answer)
                .ok_or_else(|| missing(&format!("bmsql_customer {name}"), &place))?
                .i32(0)?;
            (id, ask(session, OS_CUSTOMER, &[w, d, Param::I32(id)]).await?)
        }
    };
    let key = [status.warehouse, status.district, id];
    let row = required(answer, "bmsql_customer", &key)?;
    shown(row, 0..3)?;
    row.decimal(3)?;

    let c = Param::I32(id);
    let answer = ask(session, OS_ORDER, &[w, d, c, w, d, c]).await?;
    let row = required(answer, "bmsql_oorder of customer", &key)?;
    let order = row.i32(0)?;
    row.timestamp(1)?;
    if row.bytes(2)?.is_some() {
        row.i32(2)?;
    }
    let answer = ask(session, OS_LINES, &[w, d, Param::I32(order)]).await?;
    for row in answer.rows() {
        for column in 0..3 {
            row.i32(column)?;
        }
        row.decimal(3)?;
        if row.bytes(4)?.is_some() {
            row.timestamp(4)?;
        }
    }
    ask(session, ROLLBACK, &[]).await?;
    Ok(Outcome::Committed)
}
