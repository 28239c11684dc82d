//! Rows of customers: customer, history.

use wire::Decimal;

use super::{Part, RowSource, Selection, address, length, money, stream, string, wide};
use crate::{
    copy::Rows,
    tpcc::{
        cardinalities::{CUSTOMERS, DISTRICTS},
        names::NAMES,
        spec::Schema,
    },
};

impl RowSource {
    pub(super) fn customers(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::CUSTOMER, part);
        let (district, slice) = part.district();
        let size = CUSTOMERS * DISTRICTS / super::narrow(part.of);
        let first = slice * size + 1;
        let mut bad_credit = Selection::tenth(size);
        for customer in first..first + size {
            // The first thousand of a district have all names once, the rest are drawn.
            let name = if wide(customer) <= NAMES as u64 {
                customer - 1
            } else {
                self.last_name.draw(&mut draw)
            };
            rows.begin(21);
            rows.int(customer);
            rows.int(district);
            rows.int(part.warehouse);
            string(rows, &mut draw, 8, 16);
            rows.text(b"OE");
            rows.text(self.names.get(name).as_bytes());
            address(rows, &mut draw);
            rows.sized(|out| draw.digits(out, 16));
            rows.timestamp(self.time_of_row(row_number(part.warehouse, district, customer)));
            rows.text(if bad_credit.next(&mut draw) { b"BC" } else { b"GC" });
            rows.decimal(money(50_000));
            rows.decimal(Decimal::new(draw.int(0, 5000).into(), 4));
            rows.decimal(money(-10));
            rows.decimal(money(10));
            rows.int(1);
            rows.int(0);
            let length = length(&mut draw, 300, 500);
            rows.sized(|out| draw.alphanumeric(out, length));
        }
        size.unsigned_abs()
    }

    pub(super) fn history(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::HISTORY, part);
        let (district, _) = part.district();
        let numbered = self.schema() == Schema::Bmsql;
        for customer in 1..=CUSTOMERS {
            rows.begin(if numbered { 9 } else { 8 });
            rows.int(customer);
            rows.int(district);
            rows.int(part.warehouse);
            rows.int(district);
            rows.int(part.warehouse);
            let number = row_number(part.warehouse, district, customer);
            rows.timestamp(self.time_of_row(number));
            rows.decimal(money(10));
            string(rows, &mut draw, 12, 24);
            if numbered {
                rows.int(i32::try_from(number + 1).unwrap_or(i32::MAX));
            }
        }
        CUSTOMERS.unsigned_abs()
    }
}

/// Position of a customer (or order) among all, from 0.
pub(super) fn row_number(warehouse: i32, district: i32, number: i32) -> i64 {
    let districts = i64::from(warehouse - 1) * i64::from(DISTRICTS) + i64::from(district - 1);
    districts * i64::from(CUSTOMERS) + i64::from(number - 1)
}
