//! Payment (clause 2.5.2): what is asked and what the answers mean. Which of it travels together is
//! the face's.

use wire::{Answer, Decimal, Error, Exchange, Fields, Param, Timestamp};

use crate::tpcc::answers::{middle, missing, required, texts};
use crate::tpcc::{
    input::Payment,
    statements::{PAY_CUSTOMER, PAY_DISTRICT, PAY_HISTORY, PAY_NAMES, PAY_WAREHOUSE},
};

pub(super) fn amount(payment: &Payment) -> Decimal {
    Decimal::new(payment.amount_cents.into(), 2)
}

pub(super) fn ask_warehouse<X: Exchange>(session: &mut X, payment: &Payment) {
    let params = [Param::I32(payment.warehouse), Param::Decimal(amount(payment))];
    session.queue(PAY_WAREHOUSE, &params);
}

/// `W_NAME`.
pub(super) fn read_warehouse<'a>(answer: Answer<'a>, payment: &Payment) -> Result<&'a str, Error> {
    named_place(answer, "warehouse", &[payment.warehouse])
}

pub(super) fn ask_district<X: Exchange>(session: &mut X, payment: &Payment) {
    let [w, d] = [payment.warehouse, payment.district].map(Param::I32);
    session.queue(PAY_DISTRICT, &[w, d, Param::Decimal(amount(payment))]);
}

/// `D_NAME`.
pub(super) fn read_district<'a>(answer: Answer<'a>, payment: &Payment) -> Result<&'a str, Error> {
    named_place(answer, "district", &[payment.warehouse, payment.district])
}

/// The name of a place, and its address, which a terminal would show.
fn named_place<'a>(answer: Answer<'a>, table: &str, key: &[i32]) -> Result<&'a str, Error> {
    let mut fields = required(answer, table, key)?.fields();
    let name = fields.text()?;
    texts(&mut fields, 5)?;
    Ok(name)
}

pub(super) fn ask_names<X: Exchange>(session: &mut X, payment: &Payment, name: &str) {
    let [w, d] = [payment.customer_warehouse, payment.customer_district].map(Param::I32);
    session.queue(PAY_NAMES, &[w, d, Param::Text(name)]);
}

/// `C_ID` of the middle one of a last name.
pub(super) fn read_names(answer: Answer<'_>, payment: &Payment, name: &str) -> Result<i32, Error> {
    let place = [payment.customer_warehouse, payment.customer_district];
    middle(answer).ok_or_else(|| missing(&format!("customer {name}"), &place))?.i32(0)
}

pub(super) fn ask_customer<X: Exchange>(session: &mut X, payment: &Payment, id: i32) {
    let params = [
        Param::I32(payment.customer_warehouse),
        Param::I32(payment.customer_district),
        Param::I32(id),
        Param::Decimal(amount(payment)),
        Param::I32(payment.district),
        Param::I32(payment.warehouse),
    ];
    session.queue(PAY_CUSTOMER, &params);
}

pub(super) fn read_customer(answer: Answer<'_>, payment: &Payment, id: i32) -> Result<(), Error> {
    let key = [payment.customer_warehouse, payment.customer_district, id];
    shown_customer(&mut required(answer, "customer", &key)?.fields())
}

/// The customer's columns as a terminal would show them; `C_DATA` only of bad credit.
pub(super) fn shown_customer(fields: &mut Fields<'_>) -> Result<(), Error> {
    texts(fields, 9)?;
    fields.timestamp()?;
    let bad = fields.text()? == "BC";
    for _ in 0..3 {
        fields.decimal()?;
    }
    if bad {
        fields.text()?;
    }
    Ok(())
}

/// `data`: `H_DATA`, where the statement does not put it together itself.
pub(super) fn ask_history<X: Exchange>(
    session: &mut X,
    payment: &Payment,
    id: i32,
    now: Timestamp,
    data: Option<&str>,
) {
    let params = [
        Param::I32(id),
        Param::I32(payment.customer_district),
        Param::I32(payment.customer_warehouse),
        Param::I32(payment.district),
        Param::I32(payment.warehouse),
        Param::Timestamp(now),
        Param::Decimal(amount(payment)),
        Param::Text(data.unwrap_or_default()),
    ];
    let count = params.len() - usize::from(data.is_none());
    session.queue(PAY_HISTORY, &params[..count]);
}
