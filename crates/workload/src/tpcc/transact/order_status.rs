//! Order-Status (clause 2.6.2): what is asked and what the answers mean. Its three queries see one
//! snapshot. Which of them travel together is the face's.

use wire::{Answer, Error, Exchange, Fields, Param};

use crate::tpcc::answers::{middle, missing, required, texts};
use crate::tpcc::{
    input::OrderStatus,
    statements::{OS_CUSTOMER, OS_LINES, OS_NAMES, OS_ORDER},
};

fn place(status: &OrderStatus) -> [i32; 2] {
    [status.warehouse, status.district]
}

pub(super) fn ask_customer<X: Exchange>(session: &mut X, status: &OrderStatus, id: i32) {
    session.queue(OS_CUSTOMER, &[status.warehouse, status.district, id].map(Param::I32));
}

pub(super) fn read_customer(
    answer: Answer<'_>,
    status: &OrderStatus,
    id: i32,
) -> Result<(), Error> {
    let row = required(answer, "customer", &[status.warehouse, status.district, id])?;
    shown_customer(&mut row.fields()).map(drop)
}

pub(super) fn ask_names<X: Exchange>(session: &mut X, status: &OrderStatus, name: &str) {
    let [w, d] = place(status).map(Param::I32);
    session.queue(OS_NAMES, &[w, d, Param::Text(name)]);
}

/// `C_ID` of the middle one of a last name.
pub(super) fn read_names(
    answer: Answer<'_>,
    status: &OrderStatus,
    name: &str,
) -> Result<i32, Error> {
    let unknown = || missing(&format!("customer {name}"), &place(status));
    shown_customer(&mut middle(answer).ok_or_else(unknown)?.fields())
}

/// `C_ID` of the customer, whose balance and name a terminal would show.
pub(super) fn shown_customer(fields: &mut Fields<'_>) -> Result<i32, Error> {
    let id = fields.i32()?;
    fields.decimal()?;
    texts(fields, 3)?;
    Ok(id)
}

pub(super) fn ask_order<X: Exchange>(session: &mut X, status: &OrderStatus, customer: i32) {
    session.queue(OS_ORDER, &[status.warehouse, status.district, customer].map(Param::I32));
}

/// `O_ID` of the last order.
pub(super) fn read_order(
    answer: Answer<'_>,
    status: &OrderStatus,
    customer: i32,
) -> Result<i32, Error> {
    let key = [status.warehouse, status.district, customer];
    shown_order(&mut required(answer, "orders of customer", &key)?.fields())
}

/// `O_ID`, entry date and carrier, which it may not have yet.
pub(super) fn shown_order(fields: &mut Fields<'_>) -> Result<i32, Error> {
    let order = fields.i32()?;
    fields.timestamp()?;
    fields.nullable(Fields::i32)?;
    Ok(order)
}

pub(super) fn ask_lines<X: Exchange>(session: &mut X, status: &OrderStatus, order: i32) {
    session.queue(OS_LINES, &[status.warehouse, status.district, order].map(Param::I32));
}

pub(super) fn read_lines(
    answer: Answer<'_>,
    status: &OrderStatus,
    order: i32,
) -> Result<(), Error> {
    required(answer, "order_line", &[status.warehouse, status.district, order])?;
    for row in answer.rows() {
        let mut fields = row.fields();
        for _ in 0..3 {
            fields.i32()?;
        }
        fields.decimal()?;
        fields.nullable(Fields::timestamp)?;
    }
    Ok(())
}
