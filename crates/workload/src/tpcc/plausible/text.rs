//! Answers of the faces `statement` and `pipeline`, and rows that the other faces answer with too.

use wire::{Decimal, Param, Timestamp};

use crate::{
    plausible::{Bound, Plausible, Reply},
    tpcc::cardinalities::{CUSTOMERS, ITEMS, ORDERS},
};

pub(super) const ONE_IN: usize = 10;
/// Lines of an order that is looked at.
pub(super) const LINES: usize = 10;
/// The moment of everything that was ever loaded.
pub(super) const LOADED_AT: Param<'_> = Param::Timestamp(Timestamp(800_000_000_000_000));
/// A tax or a discount.
pub(super) const TAX: Param<'_> = Param::Decimal(Decimal::new(1_234, 4));
pub(super) const INFO: Param<'_> = Param::Text("dist-info-of-24-letters.");
pub(super) const DATA: &str = "any data of the mean length, thirty-eigh";
pub(super) const ORIGINAL_DATA: &str = "any data that holds the ORIGINAL mark.";
pub(super) const ADDRESS: [Param<'_>; 6] = [
    Param::Text("a name.."),
    Param::Text("one of the street"),
    Param::Text("two of the street"),
    Param::Text("the city's name"),
    Param::Text("ST"),
    Param::Text("123411111"),
];

pub(super) const fn money(cents: i64) -> Param<'static> {
    Param::Decimal(Decimal::new(cents, 2))
}

/// Three customers; the one in the middle, who is taken, depends on their last name, which is the
/// third parameter.
pub(super) fn namesakes(row: impl Fn(i32) -> Vec<Param<'static>>) -> Plausible {
    let reply = |middle: i32| {
        let rows = [1, middle, CUSTOMERS].map(&row);
        Plausible::written("SELECT", &rows.each_ref().map(Vec::as_slice))
    };
    Plausible::Chosen {
        replies: (0..10).map(|n| reply(CUSTOMERS / 2 + n)).collect(),
        choose: |bound| bound.bytes(2).unwrap_or_default().iter().copied().map(usize::from).sum(),
    }
}

pub(super) fn new_order(name: &str) -> Option<Plausible> {
    Some(match name {
        "no_warehouse" => Plausible::rows("SELECT", &[&[TAX]]),
        "no_district" => Plausible::rows("UPDATE", &[&[Param::I32(ORDERS + 1), TAX]]),
        "no_customer" => {
            Plausible::rows("SELECT", &[&[TAX, Param::Text("BARPRESABLE"), Param::Text("GC")]])
        }
        "no_items" => Plausible::Computed(items),
        "no_order" | "no_new_order" => Plausible::done("INSERT 0 1"),
        "no_lines" => {
            Plausible::Computed(|bound, reply| reply.affected("INSERT", bound.array_len(3)))
        }
        _ if name.starts_with("no_stock_") => stock(),
        _ => return None,
    })
}

/// Each wanted item once, in no order that matters.
pub(super) fn items(bound: Bound<'_>, reply: &mut Reply<'_>) {
    for item in bound.i32s(0).filter(|item| (1..=ITEMS).contains(item)) {
        reply.row(&[Param::I32(item), price(item), NAME, data(item)]);
    }
    reply.count("SELECT");
}

/// `I_NAME` of mean length.
pub(super) const NAME: Param<'_> = Param::Text("an item's mean name");

pub(super) fn price(item: i32) -> Param<'static> {
    money(i64::from(100 + item % 9_900))
}

/// `I_DATA`.
pub(super) fn data(item: i32) -> Param<'static> {
    Param::Text(if item % 10 == 0 { ORIGINAL_DATA } else { DATA })
}

pub(super) fn stock() -> Plausible {
    let row = |data| Plausible::written("UPDATE", &[&[Param::I32(50), INFO, Param::Text(data)]]);
    let mut replies = vec![row(DATA); ONE_IN];
    replies[0] = row(ORIGINAL_DATA);
    Plausible::Chosen { replies, choose: |bound| bound.choice(1) }
}

pub(super) fn payment(name: &str) -> Option<Plausible> {
    Some(match name {
        "pay_warehouse" | "pay_district" => Plausible::rows("UPDATE", &[&ADDRESS]),
        "pay_names" => namesakes(|id| vec![Param::I32(id)]),
        "pay_customer" => {
            let mut replies = vec![paying_customer("UPDATE", &[], false); ONE_IN];
            replies[0] = paying_customer("UPDATE", &[], true);
            Plausible::Chosen { replies, choose: |bound| bound.choice(2) }
        }
        "pay_history" | "pay_history_named" => Plausible::done("INSERT 0 1"),
        _ => return None,
    })
}

/// From `C_FIRST` to `C_BALANCE`.
pub(super) const PAYING: [Param<'_>; 14] = [
    Param::Text("a first name"),
    Param::Text("OE"),
    Param::Text("BARPRESABLE"),
    ADDRESS[1],
    ADDRESS[2],
    ADDRESS[3],
    ADDRESS[4],
    ADDRESS[5],
    Param::Text("0123456789012345"),
    LOADED_AT,
    Param::Text("GC"),
    money(5_000_000),
    TAX,
    money(-123_456),
];
/// Position of `C_CREDIT` there.
pub(super) const CREDIT: usize = 10;

/// `before`: columns that come first. `C_DATA` is shown only of a customer of bad credit.
pub(super) fn paying_customer(verb: &str, before: &[Param<'_>], bad_credit: bool) -> Vec<u8> {
    let words = DATA.repeat(6);
    let mut paying = PAYING;
    paying[CREDIT] = Param::Text(if bad_credit { "BC" } else { "GC" });
    let data = if bad_credit { Param::Text(&words[..200]) } else { Param::Null };
    Plausible::written(verb, &[&[before, &paying, &[data]].concat()])
}

pub(super) fn others(name: &str) -> Option<Plausible> {
    Some(match name {
        "os_customer" => Plausible::rows("SELECT", &[&known_customer(1)]),
        "os_names" => namesakes(|id| known_customer(id).to_vec()),
        "os_order" => Plausible::rows("SELECT", &[&[Param::I32(ORDERS), LOADED_AT, Param::I32(5)]]),
        "os_lines" => Plausible::rows("SELECT", &[&order_line()[..]; LINES]),
        "del_new_order" => Plausible::rows("DELETE", &[&[Param::I32(ORDERS)]]),
        "del_order" => Plausible::rows("UPDATE", &[&[Param::I32(CUSTOMERS / 2)]]),
        "del_lines" => Plausible::rows("SELECT", &[&[money(5_000_000)]]),
        "del_customer" => Plausible::done("UPDATE 1"),
        "sl_district" => Plausible::rows("SELECT", &[&[Param::I32(ORDERS + 1)]]),
        "sl_count" => Plausible::rows("SELECT", &[&[Param::I64(13)]]),
        _ => return None,
    })
}

pub(super) fn known_customer(id: i32) -> [Param<'static>; 5] {
    [
        Param::I32(id),
        money(-1_000),
        Param::Text("a first name"),
        Param::Text("OE"),
        Param::Text("BARPRESABLE"),
    ]
}

pub(super) fn order_line() -> [Param<'static>; 5] {
    [Param::I32(ITEMS / 2), Param::I32(1), Param::I32(5), money(123_456), LOADED_AT]
}
