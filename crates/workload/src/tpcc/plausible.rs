//! What a server would plausibly answer to the statements of TPC-C, by their names: rows of mean
//! size (clause 1.3 and 4.3.3.1), three customers of a last name, ten lines of an order, one
//! customer in ten of bad credit, one stock row in ten "ORIGINAL". Every item exists but the unused
//! one; every district has an order to deliver.

mod bmsql;
mod procedures;

use wire::{Decimal, Param, Timestamp};

use super::{
    schema::{CUSTOMERS, ITEMS, ORDERS},
    spec::{Face, Rules, TpccSpec},
};
use crate::plausible::{Bound, Plausible, Reply};

const ONE_IN: usize = 10;
/// Lines of an order that is looked at.
const LINES: usize = 10;
/// The moment of everything that was ever loaded.
const LOADED_AT: Param<'_> = Param::Timestamp(Timestamp(800_000_000_000_000));
/// A tax or a discount.
const TAX: Param<'_> = Param::Decimal(Decimal::new(1_234, 4));
const INFO: Param<'_> = Param::Text("dist-info-of-24-letters.");
const DATA: &str = "any data of the mean length, thirty-eigh";
const ORIGINAL_DATA: &str = "any data that holds the ORIGINAL mark.";
const ADDRESS: [Param<'_>; 6] = [
    Param::Text("a name.."),
    Param::Text("one of the street"),
    Param::Text("two of the street"),
    Param::Text("the city's name"),
    Param::Text("ST"),
    Param::Text("123411111"),
];

/// The answer to the statement of this name; `None`: it is not known here.
#[must_use]
pub fn answer(spec: &TpccSpec, name: &str) -> Option<Plausible> {
    match (spec.rules, spec.face, name) {
        (_, _, "begin" | "begin_snapshot") => Some(Plausible::done("BEGIN")),
        (_, _, "commit") => Some(Plausible::done("COMMIT")),
        (_, _, "rollback") => Some(Plausible::done("ROLLBACK")),
        (Rules::BenchmarkSql5, _, _) => bmsql::answer(name),
        (Rules::Text, Face::Procedure, _) => procedures::answer(name),
        (Rules::Text, _, _) => new_order(name).or_else(|| payment(name)).or_else(|| others(name)),
    }
}

const fn money(cents: i64) -> Param<'static> {
    Param::Decimal(Decimal::new(cents, 2))
}

/// Three customers; the one in the middle, who is taken, depends on their last name, which is the
/// third parameter.
fn namesakes(row: impl Fn(i32) -> Vec<Param<'static>>) -> Plausible {
    let reply = |middle: i32| {
        let rows = [1, middle, CUSTOMERS].map(&row);
        Plausible::written("SELECT", &rows.each_ref().map(Vec::as_slice))
    };
    Plausible::Chosen {
        replies: (0..10).map(|n| reply(CUSTOMERS / 2 + n)).collect(),
        choose: |bound| bound.bytes(2).unwrap_or_default().iter().copied().map(usize::from).sum(),
    }
}

fn new_order(name: &str) -> Option<Plausible> {
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
fn items(bound: Bound<'_>, reply: &mut Reply<'_>) {
    for item in bound.i32s(0).filter(|item| (1..=ITEMS).contains(item)) {
        reply.row(&[Param::I32(item), price(item), NAME, data(item)]);
    }
    reply.count("SELECT");
}

/// `I_NAME` of mean length.
const NAME: Param<'_> = Param::Text("an item's mean name");

fn price(item: i32) -> Param<'static> {
    money(i64::from(100 + item % 9_900))
}

/// `I_DATA`.
fn data(item: i32) -> Param<'static> {
    Param::Text(if item % 10 == 0 { ORIGINAL_DATA } else { DATA })
}

fn stock() -> Plausible {
    let row = |data| Plausible::written("UPDATE", &[&[Param::I32(50), INFO, Param::Text(data)]]);
    let mut replies = vec![row(DATA); ONE_IN];
    replies[0] = row(ORIGINAL_DATA);
    Plausible::Chosen { replies, choose: |bound| bound.choice(1) }
}

fn payment(name: &str) -> Option<Plausible> {
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
const PAYING: [Param<'_>; 14] = [
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
const CREDIT: usize = 10;

/// `before`: columns that come first. `C_DATA` is shown only of a customer of bad credit.
fn paying_customer(verb: &str, before: &[Param<'_>], bad_credit: bool) -> Vec<u8> {
    let words = DATA.repeat(6);
    let mut paying = PAYING;
    paying[CREDIT] = Param::Text(if bad_credit { "BC" } else { "GC" });
    let data = if bad_credit { Param::Text(&words[..200]) } else { Param::Null };
    Plausible::written(verb, &[&[before, &paying, &[data]].concat()])
}

fn others(name: &str) -> Option<Plausible> {
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

fn known_customer(id: i32) -> [Param<'static>; 5] {
    [
        Param::I32(id),
        money(-1_000),
        Param::Text("a first name"),
        Param::Text("OE"),
        Param::Text("BARPRESABLE"),
    ]
}

fn order_line() -> [Param<'static>; 5] {
    [Param::I32(ITEMS / 2), Param::I32(1), Param::I32(5), money(123_456), LOADED_AT]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Workload, tpcc::Tpcc};
    use serde_json::json;

    #[test]
    fn every_statement_of_every_face_has_an_answer() {
        for spec in [
            json!({"kind": "tpcc"}),
            json!({"kind": "tpcc", "face": "pipeline"}),
            json!({"kind": "tpcc", "face": "procedure"}),
            json!({"kind": "tpcc", "schema": "bmsql", "rules": "benchmarksql-5",
                   "delivery": "inline"}),
        ] {
            let tpcc = Tpcc::from_spec(&spec).expect("a specification");
            for statement in tpcc.statements() {
                assert!(tpcc.plausible(statement).is_some(), "{spec}: {}", statement.name);
            }
            assert!(answer(tpcc.spec(), "no_such_statement").is_none());
        }
    }

    #[test]
    fn the_unused_item_has_no_row() {
        let mut bound = Vec::new();
        Param::I32s(&[7, ITEMS + 1, 10]).encode(&mut bound);
        let mut out = Vec::new();
        new_order("no_items").expect("known").answer(Bound(&bound), &mut out);
        assert!(out.ends_with(b"SELECT 2\0"));
    }

    #[test]
    fn one_customer_in_ten_is_of_bad_credit_whoever_is_named() {
        let (names, pays) = (payment("pay_names").expect("known"), payment("pay_customer"));
        let pays = pays.expect("known");
        let mut bad = 0;
        for number in 0..1000 {
            let mut bound = Vec::new();
            for param in [Param::Null, Param::Null, Param::Text(&number.to_string())] {
                param.encode(&mut bound);
            }
            let mut found = Vec::new();
            names.answer(Bound(&bound), &mut found);
            // Three rows of one integer: 5 bytes of header, 2 of count, 4 of length, the value.
            let middle = found[15 + 11..15 + 15].try_into().expect("an integer");
            let mut bound = Vec::new();
            for param in [Param::Null, Param::Null, Param::I32(i32::from_be_bytes(middle))] {
                param.encode(&mut bound);
            }
            let mut paid = Vec::new();
            pays.answer(Bound(&bound), &mut paid);
            bad += usize::from(paid.windows(2).any(|pair| pair == b"BC"));
        }
        assert!((50..150).contains(&bad), "{bad} of 1000");
    }
}
