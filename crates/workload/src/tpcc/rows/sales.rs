//! Rows of orders: orders, `order_line`, `new_order`, warehouse by warehouse or as they arrived.

use wire::Decimal;

use super::{BLOCK_ORDERS, Part, RowSource, narrow, people::row_number, stream, wide};
use crate::{
    copy::Rows,
    dataset::Units,
    draw::{Draw, Indexed},
    permute::Permutation,
    tpcc::cardinalities::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS},
};

/// An order, by its key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    warehouse: i32,
    district: i32,
    number: i32,
}

impl Order {
    /// The `position`-th order, from 0, as orders arrive from number `first` on: the first of each
    /// district of each warehouse, then the second of each, and so on.
    fn arrived(before: i32, units: &Units, position: u64, first: i32) -> Self {
        let districts = wide(DISTRICTS);
        let round = districts * u64::from(units.count());
        let within = position % round;
        let number = |value: u64| i32::try_from(value).unwrap_or(i32::MAX);
        let unit = units.nth(u32::try_from(within / districts).unwrap_or(u32::MAX));
        Self {
            warehouse: before + narrow(unit) + 1,
            district: number(within % districts) + 1,
            number: first + number(position / round),
        }
    }

    fn delivered(self) -> bool {
        self.number < FIRST_NEW_ORDER
    }
}

/// What a district's orders have in common.
struct District<'a> {
    source: &'a RowSource,
    line_counts: Indexed,
    carriers: Indexed,
    customers: Permutation,
}

impl<'a> District<'a> {
    fn of(source: &'a RowSource, warehouse: i32, district: i32) -> Self {
        let indexed = |stream| Indexed::new(source.seed, stream, wide(warehouse), wide(district));
        Self {
            source,
            line_counts: indexed(stream::LINE_COUNTS),
            carriers: indexed(stream::CARRIERS),
            customers: Permutation::new(indexed(stream::CUSTOMERS), CUSTOMERS.unsigned_abs()),
        }
    }

    /// Lines of an order (clause 4.3.3.1: `O_OL_CNT` in 5..=15).
    fn lines(&self, number: i32) -> i32 {
        5 + small(self.line_counts.below(wide(number), 11))
    }

    fn order(&self, order: Order, rows: &mut Rows<'_>) {
        let Order { warehouse, district, number } = order;
        rows.begin(8);
        rows.int(number);
        rows.int(district);
        rows.int(warehouse);
        rows.int(narrow(self.customers.at(number.unsigned_abs() - 1)) + 1);
        rows.timestamp(self.source.time_of_row(row_number(warehouse, district, number)));
        if order.delivered() {
            rows.int(1 + small(self.carriers.below(wide(number), 10)));
        } else {
            rows.null();
        }
        rows.int(self.lines(number));
        rows.int(1);
    }

    fn order_lines(&self, order: Order, rows: &mut Rows<'_>) -> u32 {
        let Order { warehouse, district, number } = order;
        let mut draw = {
            let place = wide((district - 1) * ORDERS + number);
            Draw::new(self.source.seed, stream::ORDER_LINE, wide(warehouse), place)
        };
        let entered = self.source.time_of_row(row_number(warehouse, district, number));
        let lines = self.lines(number);
        for line in 1..=lines {
            rows.begin(10);
            rows.int(number);
            rows.int(district);
            rows.int(warehouse);
            rows.int(line);
            rows.int(draw.int(1, ITEMS));
            rows.int(warehouse);
            if order.delivered() {
                rows.timestamp(entered);
            } else {
                rows.null();
            }
            rows.int(5);
            let cents = if order.delivered() { 0 } else { draw.int(1, 999_999) };
            rows.decimal(Decimal::new(cents.into(), 2));
            rows.sized(|out| draw.alphanumeric(out, 24));
        }
        lines.unsigned_abs()
    }
}

impl RowSource {
    pub(super) fn orders(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let (district, _) = part.district();
        let of = District::of(self, part.warehouse, district);
        for number in 1..=ORDERS {
            of.order(Order { warehouse: part.warehouse, district, number }, rows);
        }
        ORDERS.unsigned_abs()
    }

    pub(super) fn lines(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let (district, block) = part.district();
        let of = District::of(self, part.warehouse, district);
        let first = block * BLOCK_ORDERS + 1;
        (first..first + BLOCK_ORDERS)
            .map(|number| Order { warehouse: part.warehouse, district, number })
            .map(|order| of.order_lines(order, rows))
            .sum()
    }

    pub(super) fn new_orders(part: Part, rows: &mut Rows<'_>) -> u32 {
        for district in 1..=DISTRICTS {
            for number in FIRST_NEW_ORDER..=ORDERS {
                new_order(Order { warehouse: part.warehouse, district, number }, rows);
            }
        }
        ((ORDERS - FIRST_NEW_ORDER + 1) * DISTRICTS).unsigned_abs()
    }

    /// As [`RowSource::orders`], for orders of all these warehouses as they arrived; `places` are
    /// the orders' positions from 0.
    pub(super) fn arrived_orders(
        &self,
        units: &Units,
        places: std::ops::Range<u64>,
        rows: &mut Rows<'_>,
    ) -> u32 {
        let mut made = 0;
        for place in places {
            let order = Order::arrived(self.before, units, place, 1);
            District::of(self, order.warehouse, order.district).order(order, rows);
            made += 1;
        }
        made
    }

    /// As [`RowSource::lines`], for orders as they arrived.
    pub(super) fn arrived_lines(
        &self,
        units: &Units,
        places: std::ops::Range<u64>,
        rows: &mut Rows<'_>,
    ) -> u32 {
        places
            .map(|place| Order::arrived(self.before, units, place, 1))
            .map(|order| {
                District::of(self, order.warehouse, order.district).order_lines(order, rows)
            })
            .sum()
    }

    /// As [`RowSource::new_orders`], for orders as they arrived.
    pub(super) fn arrived_new_orders(
        &self,
        units: &Units,
        places: std::ops::Range<u64>,
        rows: &mut Rows<'_>,
    ) -> u32 {
        let mut made = 0;
        for place in places {
            new_order(Order::arrived(self.before, units, place, FIRST_NEW_ORDER), rows);
            made += 1;
        }
        made
    }

    /// Lines of all orders of a warehouse.
    pub(super) fn lines_of_warehouse(&self, warehouse: i32) -> u64 {
        let districts = (1..=DISTRICTS).map(|district| District::of(self, warehouse, district));
        districts.flat_map(|of| (1..=ORDERS).map(move |number| wide(of.lines(number)))).sum()
    }
}

fn new_order(order: Order, rows: &mut Rows<'_>) {
    rows.begin(3);
    rows.int(order.number);
    rows.int(order.district);
    rows.int(order.warehouse);
}

/// A value drawn from a small range.
fn small(value: u64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}
