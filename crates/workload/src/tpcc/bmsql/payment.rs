//! Payment: 8 exchanges, one more for a last name, one more for bad credit.

use wire::{Decimal, Error, Exchange, Param, Timestamp};

use super::{
    session::begin,
    statements::{
        COMMIT, NAMES, PAY_CUSTOMER, PAY_CUSTOMER_DATA, PAY_CUSTOMER_READ, PAY_DATA_READ,
        PAY_DISTRICT, PAY_DISTRICT_READ, PAY_HISTORY, PAY_WAREHOUSE, PAY_WAREHOUSE_READ,
    },
};
use crate::{
    tpcc::{
        answers::{ask, middle, missing, required, shown},
        input::{Customer, Payment},
        names::LastNames,
    },
    workload::Outcome,
};

/// Most characters of `C_DATA`.
const DATA_MAX: usize = 500;

pub(super) async fn payment<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    payment: &Payment,
    now: Timestamp,
) -> Result<Outcome, Error> {
    let amount = Param::F64(f64::from(payment.amount_cents) / 100.0);
    let (w, d) = (Param::I32(payment.warehouse), Param::I32(payment.district));
    begin(session, PAY_DISTRICT, &[amount, w, d]).await?;
    let answer = ask(session, PAY_DISTRICT_READ, &[w, d]).await?;
    let row = required(answer, "bmsql_district", &[payment.warehouse, payment.district])?;
    shown(row, 1..6)?;
    let district = row.text(0)?.to_owned();

    ask(session, PAY_WAREHOUSE, &[amount, w]).await?;
    let answer = ask(session, PAY_WAREHOUSE_READ, &[w]).await?;
    let row = required(answer, "bmsql_warehouse", &[payment.warehouse])?;
    shown(row, 1..6)?;
    let mut data = row.text(0)?.to_owned();
    data.push_str("    ");
    data.push_str(&district);

    let id = customer_id(session, names, payment).await?;
    customer(session, payment, id, amount).await?;
    let params = [
        Param::I32(id),
        Param::I32(payment.customer_district),
        Param::I32(payment.customer_warehouse),
        d,
        w,
        Param::Timestamp(now),
        amount,
        Param::Text(&data),
    ];
    ask(session, PAY_HISTORY, &params).await?;
    ask(session, COMMIT, &[]).await?;
    Ok(Outcome::Committed)
}

async fn customer_id<X: Exchange>(
    session: &mut X,
    names: &LastNames,
    payment: &Payment,
) -> Result<i32, Error> {
    let name = match payment.customer {
        Customer::Id(id) => return Ok(id),
        Customer::LastName(name) => names.get(name),
    };
    let key = [payment.customer_warehouse, payment.customer_district];
    let [w, d] = key.map(Param::I32);
    let answer = ask(session, NAMES, &[w, d, Param::Text(name)]).await?;
    let row = middle(answer).ok_or_else(|| missing(&format!("bmsql_customer {name}"), &key))?;
    row.i32(0)
}

async fn customer<X: Exchange>(
    session: &mut X,
    payment: &Payment,
    id: i32,
    amount: Param<'_>,
) -> Result<(), Error> {
    let key = [payment.customer_warehouse, payment.customer_district, id];
    let [w, d, c] = key.map(Param::I32);
    let answer = ask(session, PAY_CUSTOMER_READ, &[w, d, c]).await?;
    let row = required(answer, "bmsql_customer", &key)?;
    shown(row, 0..9)?;
    row.timestamp(9)?;
    let bad = row.text(10)? != "GC";
    for column in 11..14 {
        row.decimal(column)?;
    }
    if !bad {
        ask(session, PAY_CUSTOMER, &[amount, amount, w, d, c]).await?;
        return Ok(());
    }
    let answer = ask(session, PAY_DATA_READ, &[w, d, c]).await?;
    let old = required(answer, "bmsql_customer", &key)?.text(0)?;
    let data = data(payment, id, old);
    ask(session, PAY_CUSTOMER_DATA, &[amount, amount, Param::Text(&data), w, d, c]).await?;
    Ok(())
}

/// The payment's data before the old, cut at 500 characters.
fn data(payment: &Payment, id: i32, old: &str) -> String {
    let Payment { warehouse, district, customer_warehouse, customer_district, .. } = *payment;
    let amount = Decimal::new(payment.amount_cents.into(), 2);
    let (whole, cents) = (amount.unscaled / 100, amount.unscaled % 100);
    let mut data = format!(
        "C_ID={id} C_D_ID={customer_district} C_W_ID={customer_warehouse} D_ID={district} \
         W_ID={warehouse} H_AMOUNT={whole}.{cents:02}   "
    );
    data.push_str(old);
    if let Some((end, _)) = data.char_indices().nth(DATA_MAX) {
        data.truncate(end);
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_are_pushed_right_and_cut() {
        let payment = Payment {
            warehouse: 1,
            district: 2,
            customer_warehouse: 3,
            customer_district: 4,
            customer: Customer::Id(5),
            amount_cents: 1205,
        };
        let data = data(&payment, 5, &"x".repeat(480));
        assert!(data.starts_with("C_ID=5 C_D_ID=4 C_W_ID=3 D_ID=2 W_ID=1 H_AMOUNT=12.05   xxx"));
        assert_eq!(data.chars().count(), DATA_MAX);
    }
}
