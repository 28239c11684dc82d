//! Answers of face `procedure`: one row for each call.

use wire::{Decimal, Param, Timestamp};

use super::text::{
    ADDRESS, LINES, LOADED_AT, NAME, ONE_IN, TAX, known_customer, order_line, paying_customer,
};
use crate::{
    plausible::{Bound, Plausible, Reply},
    tpcc::{
        cardinalities::{CUSTOMERS, ITEMS, ORDERS},
        input::LINES_MAX,
    },
};

pub(super) fn answer(name: &str) -> Option<Plausible> {
    Some(match name {
        "new_order" => Plausible::Computed(new_order),
        "payment" => payment(),
        "order_status" => order_status(),
        "delivery" => Plausible::rows("SELECT", &[&[Param::I32(0)]]),
        "stock_level" => Plausible::rows("SELECT", &[&[Param::I64(13)]]),
        _ => return None,
    })
}

/// The lines whose item exists, in the order in which they were sent.
fn new_order(bound: Bound<'_>, reply: &mut Reply<'_>) {
    let (mut numbers, mut prices) = ([0; LINES_MAX], [Decimal::new(0, 2); LINES_MAX]);
    let mut count = 0;
    for (number, item) in bound.i32s(5).zip(bound.i32s(6)).take(LINES_MAX) {
        if (1..=ITEMS).contains(&item) {
            numbers[count] = number;
            prices[count] = Decimal::new(i64::from(100 + item % 9_900), 2);
            count += 1;
        }
    }
    let Param::Text(name) = NAME else { return };
    reply.row(&[
        Param::I32(ORDERS + 1),
        TAX,
        TAX,
        TAX,
        Param::Text("BARPRESABLE"),
        Param::Text("GC"),
        Param::I32s(&numbers[..count]),
        Param::Texts(&[name; LINES_MAX][..count]),
        Param::Decimals(&prices[..count]),
        Param::I32s(&[50; LINES_MAX][..count]),
        Param::I32s(&[0; LINES_MAX][..count]),
    ]);
    reply.end("CALL");
}

/// The customer is not always told, the time is: its last digit chooses.
fn payment() -> Plausible {
    let before = [&ADDRESS[1..], &ADDRESS[1..], &[Param::I32(CUSTOMERS / 2)]].concat();
    let mut replies = vec![paying_customer("SELECT", &before, false); ONE_IN];
    replies[0] = paying_customer("SELECT", &before, true);
    Plausible::Chosen {
        replies,
        choose: |bound| {
            let time = bound.bytes(7).and_then(|bytes| <[u8; 8]>::try_from(bytes).ok());
            usize::try_from(time.map_or(0, u64::from_be_bytes) % ONE_IN as u64).unwrap_or(0)
        },
    }
}

fn order_status() -> Plausible {
    let line = order_line();
    let mut row = known_customer(CUSTOMERS / 2).to_vec();
    row.extend([Param::I32(ORDERS), LOADED_AT, Param::I32(5)]);
    let (Param::Decimal(amount), Param::Timestamp(Timestamp(at))) = (line[3], LOADED_AT) else {
        return Plausible::rows("SELECT", &[]);
    };
    let (items, supplies, quantities) = ([ITEMS / 2; LINES], [1; LINES], [5; LINES]);
    let (amounts, dates) = ([amount; LINES], [Timestamp(at); LINES]);
    row.extend([
        Param::I32s(&items),
        Param::I32s(&supplies),
        Param::I32s(&quantities),
        Param::Decimals(&amounts),
        Param::Timestamps(&dates),
    ]);
    Plausible::rows("SELECT", &[&row])
}
