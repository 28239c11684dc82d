//! Payment (clause 2.5.2).

use wire::{Decimal, Error, Exchange, Param, Timestamp};

use super::{ask, middle, required, shown};
use crate::{
    Outcome,
    tpcc::{
        input::{Customer, Payment},
        names::LastNames,
        statements::{
            BEGIN, COMMIT, PAY_CUSTOMER, PAY_DISTRICT, PAY_HISTORY, PAY_NAMES, PAY_WAREHOUSE,
        },
    },
};

pub(super) async fn perform<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    payment: &Payment,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let amount = Decimal::new(payment.amount_cents.into(), 2);
    ask(session, BEGIN, &[]).await?;
    // H_DATA: the names of warehouse and district, four spaces between them.
    let mut data = warehouse(session, payment, amount).await?;
    data.push_str("    ");
    data.push_str(&district(session, payment, amount).await?);

    let id = match payment.customer {
        Customer::Id(id) => id,
        Customer::LastName(name) => by_name(session, payment, names.get(name)).await?,
    };
    customer(session, payment, id, amount).await?;
    let params = [
        Param::I32(id),
        Param::I32(payment.customer_district),
        Param::I32(payment.customer_warehouse),
        Param::I32(payment.district),
        Param::I32(payment.warehouse),
        Param::Timestamp(now),
        Param::Decimal(amount),
        Param::Text(&data),
    ];
    ask(session, PAY_HISTORY, &params).await?;
    ask(session, COMMIT, &[]).await?;
    Ok(Outcome::Committed)
}

async fn warehouse<X: Exchange>(
    session: &mut X,
    payment: &Payment,
    amount: Decimal,
) -> Result<String, Error> {
    let params = [Param::I32(payment.warehouse), Param::Decimal(amount)];
    let answer = ask(session, PAY_WAREHOUSE, &params).await?;
    let row = required(answer, "warehouse", &[payment.warehouse])?;
    shown(row, 1..6)?;
    Ok(row.text(0)?.to_owned())
}

async fn district<X: Exchange>(
    session: &mut X,
    payment: &Payment,
    amount: Decimal,
) -> Result<String, Error> {
    let params =
        [Param::I32(payment.warehouse), Param::I32(payment.district), Param::Decimal(amount)];
    let answer = ask(session, PAY_DISTRICT, &params).await?;
    let row = required(answer, "district", &[payment.warehouse, payment.district])?;
    shown(row, 1..6)?;
    Ok(row.text(0)?.to_owned())
}

async fn by_name<X: Exchange>(
    session: &mut X,
    payment: &Payment,
    name: &str,
) -> Result<i32, Error> {
    let (warehouse, district) = (payment.customer_warehouse, payment.customer_district);
    let params = [Param::I32(warehouse), Param::I32(district), Param::Text(name)];
    let answer = ask(session, PAY_NAMES, &params).await?;
    let row = middle(answer)
        .ok_or_else(|| super::missing(&format!("customer {name}"), &[warehouse, district]))?;
    row.i32(0)
}

async fn customer<X: Exchange>(
    session: &mut X,
    payment: &Payment,
    id: i32,
    amount: Decimal,
) -> Result<(), Error> {
    let (warehouse, district) = (payment.customer_warehouse, payment.customer_district);
    let params = [
        Param::I32(warehouse),
        Param::I32(district),
        Param::I32(id),
        Param::Decimal(amount),
        Param::I32(payment.district),
        Param::I32(payment.warehouse),
    ];
    let answer = ask(session, PAY_CUSTOMER, &params).await?;
    let row = required(answer, "customer", &[warehouse, district, id])?;
    shown(row, 0..9)?;
    row.timestamp(9)?;
    let credit = row.text(10)?;
    for column in 11..14 {
        row.decimal(column)?;
    }
    if credit == "BC" {
        row.text(14)?;
    }
    Ok(())
}
