//! Order-Status (clause 2.6.2). Its three queries see one snapshot.

use wire::{Error, Exchange, Param};

use super::{ask, middle, missing, required, shown};
use crate::{
    Outcome,
    tpcc::{
        input::{Customer, OrderStatus},
        names::LastNames,
        statements::{BEGIN_SNAPSHOT, COMMIT, OS_CUSTOMER, OS_LINES, OS_NAMES, OS_ORDER},
    },
};

pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    status: &OrderStatus,
) -> Result<Outcome, Error> {
    let (warehouse, district) = (status.warehouse, status.district);
    let place = [Param::I32(warehouse), Param::I32(district)];
    ask(session, BEGIN_SNAPSHOT, &[]).await?;

    let row = match status.customer {
        Customer::Id(id) => {
            let answer = ask(session, OS_CUSTOMER, &[place[0], place[1], Param::I32(id)]).await?;
            required(answer, "customer", &[warehouse, district, id])?
        }
        Customer::LastName(name) => {
            let name = names.get(name);
            let answer = ask(session, OS_NAMES, &[place[0], place[1], Param::Text(name)]).await?;
            middle(answer)
                .ok_or_else(|| missing(&format!("customer {name}"), &[warehouse, district]))?
        }
    };
    let customer = row.i32(0)?;
    row.decimal(1)?;
    shown(row, 2..5)?;

    let answer = ask(session, OS_ORDER, &[place[0], place[1], Param::I32(customer)]).await?;
    let row = required(answer, "orders of customer", &[warehouse, district, customer])?;
    let order = row.i32(0)?;
    row.timestamp(1)?;
    if row.bytes(2)?.is_some() {
        row.i32(2)?;
    }

    let answer = ask(session, OS_LINES, &[place[0], place[1], Param::I32(order)]).await?;
    required(answer, "order_line", &[warehouse, district, order])?;
    for row in answer.rows() {
        for column in 0..3 {
            row.i32(column)?;
        }
        row.decimal(3)?;
        if row.bytes(4)?.is_some() {
            row.timestamp(4)?;
        }
    }
    ask(session, COMMIT, &[]).await?;
    Ok(Outcome::Committed)
}
