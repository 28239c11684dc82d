//! Rows of orders: orders, `order_line`, `new_order`.

use wire::Decimal;

use super::{BLOCK_ORDERS, BLOCKS_PER_DISTRICT, Part, RowSource, people::row_number, stream};
use crate::{
    copy::Rows,
    draw::Draw,
    tpcc::schema::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS},
};

impl RowSource {
    pub(super) fn orders(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::ORDERS, part);
        let (district, _) = part.district();
        let customers = permutation(&mut draw);
        let mut customers = customers.iter();
        for block in 0..BLOCKS_PER_DISTRICT {
            let counts = self.line_counts(part.warehouse, district, block);
            let first = block * BLOCK_ORDERS + 1;
            for ((order, lines), customer) in (first..).zip(counts).zip(&mut customers) {
                rows.begin(8);
                rows.int(order);
                rows.int(district);
                rows.int(part.warehouse);
                rows.int(*customer);
                rows.timestamp(self.time_of_row(row_number(part.warehouse, district, order)));
                if order < FIRST_NEW_ORDER {
                    rows.int(draw.int(1, 10));
                } else {
                    rows.null();
                }
                rows.int(lines);
                rows.int(1);
            }
        }
        ORDERS.unsigned_abs()
    }

    pub(super) fn lines(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::ORDER_LINE, part);
        let (district, block) = part.district();
        let counts = self.line_counts(part.warehouse, district, block);
        let mut made = 0;
        for (order, lines) in (block * BLOCK_ORDERS + 1..).zip(counts) {
            let delivered = order < FIRST_NEW_ORDER;
            let entered = self.time_of_row(row_number(part.warehouse, district, order));
            for line in 1..=lines {
                rows.begin(10);
                rows.int(order);
                rows.int(district);
                rows.int(part.warehouse);
                rows.int(line);
                rows.int(draw.int(1, ITEMS));
                rows.int(part.warehouse);
                if delivered {
                    rows.timestamp(entered);
                } else {
                    rows.null();
                }
                rows.int(5);
                let cents = if delivered { 0 } else { draw.int(1, 999_999) };
                rows.decimal(Decimal::new(cents.into(), 2));
                rows.sized(|out| draw.alphanumeric(out, 24));
            }
            made += lines;
        }
        made.unsigned_abs()
    }

    pub(super) fn new_orders(part: Part, rows: &mut Rows<'_>) -> u32 {
        for district in 1..=DISTRICTS {
            for order in FIRST_NEW_ORDER..=ORDERS {
                rows.begin(3);
                rows.int(order);
                rows.int(district);
                rows.int(part.warehouse);
            }
        }
        ((ORDERS - FIRST_NEW_ORDER + 1) * DISTRICTS).unsigned_abs()
    }
}

/// The customers of a district in random order, each order with the same probability (Fisher and
/// Yates).
fn permutation(draw: &mut Draw) -> Vec<i32> {
    let mut customers: Vec<i32> = (1..=CUSTOMERS).collect();
    for last in (1..customers.len()).rev() {
        let other = draw.below(last as u64 + 1);
        customers.swap(last, usize::try_from(other).unwrap_or(last));
    }
    customers
}
