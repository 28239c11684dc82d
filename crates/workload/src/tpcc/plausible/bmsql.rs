//! Answers of the rules `benchmarksql-5`.

use wire::Param;

use super::text::{
    ADDRESS, CREDIT, DATA, INFO, LINES, LOADED_AT, NAME, ONE_IN, PAYING, TAX, data, money,
    namesakes, order_line, price,
};
use crate::plausible::Plausible;
use crate::tpcc::cardinalities::{CUSTOMERS, ITEMS, ORDERS};

/// Its Delivery reads all undelivered orders of a district: 900 after the load, and as many as
/// come and go later.
const UNDELIVERED: i32 = 900;

pub(super) fn answer(name: &str) -> Option<Plausible> {
    new_order(name).or_else(|| payment(name)).or_else(|| others(name))
}

fn new_order(name: &str) -> Option<Plausible> {
    Some(match name {
        "no_district" => Plausible::rows("SELECT", &[&[TAX, Param::I32(ORDERS + 1)]]),
        "no_customer" => {
            Plausible::rows("SELECT", &[&[TAX, Param::Text("BARPRESABLE"), Param::Text("GC"), TAX]])
        }
        "no_take_number" | "no_take_stock" => Plausible::done("UPDATE 1"),
        "no_order" | "no_new_order" | "no_line" => Plausible::done("INSERT 0 1"),
        "no_item" => Plausible::Computed(|bound, reply| {
            let item = bound.i32(0);
            if (1..=ITEMS).contains(&item) {
                reply.row(&[price(item), NAME, data(item)]);
            }
            reply.count("SELECT");
        }),
        "no_stock" => {
            let mut row = vec![Param::I32(50), Param::Text(DATA)];
            row.extend([INFO; 10]);
            Plausible::rows("SELECT", &[&row])
        }
        _ => return None,
    })
}

fn payment(name: &str) -> Option<Plausible> {
    Some(match name {
        "pay_district" | "pay_warehouse" | "pay_customer" | "pay_customer_data" => {
            Plausible::done("UPDATE 1")
        }
        "pay_district_read" | "pay_warehouse_read" => Plausible::rows("SELECT", &[&ADDRESS]),
        "names" => namesakes(|id| vec![Param::I32(id)]),
        "pay_customer_read" => {
            let reply = |credit| {
                let mut row = PAYING;
                row[CREDIT] = Param::Text(credit);
                Plausible::written("SELECT", &[&row])
            };
            let mut replies = vec![reply("GC"); ONE_IN];
            replies[0] = reply("BC");
            Plausible::Chosen { replies, choose: |bound| bound.choice(2) }
        }
        "pay_data_read" => {
            let data = DATA.repeat(10);
            Plausible::rows("SELECT", &[&[Param::Text(&data)]])
        }
        "pay_history" => Plausible::done("INSERT 0 1"),
        _ => return None,
    })
}

fn others(name: &str) -> Option<Plausible> {
    Some(match name {
        "os_customer" => {
            Plausible::rows("SELECT", &[&[PAYING[0], PAYING[1], PAYING[2], money(-1_000)]])
        }
        "os_order" => Plausible::rows("SELECT", &[&[Param::I32(ORDERS), LOADED_AT, Param::I32(5)]]),
        "os_lines" => Plausible::rows("SELECT", &[&order_line()[..]; LINES]),
        "sl_count" => Plausible::rows("SELECT", &[&[Param::I64(13)]]),
        "del_new_orders" => {
            let rows: Vec<_> = (0..UNDELIVERED).map(|n| [Param::I32(ORDERS + n)]).collect();
            let rows: Vec<&[Param<'_>]> = rows.iter().map(<[Param<'_>; 1]>::as_slice).collect();
            Plausible::rows("SELECT", &rows)
        }
        "del_take" => Plausible::done("DELETE 1"),
        "del_order" | "del_customer" => Plausible::done("UPDATE 1"),
        "del_lines" => Plausible::done("UPDATE 10"),
        "del_order_read" => Plausible::rows("SELECT", &[&[Param::I32(CUSTOMERS / 2)]]),
        "del_sum" => Plausible::rows("SELECT", &[&[money(5_000_000)]]),
        _ => return None,
    })
}
