//! Rows that describe what is sold and where: item, stock, warehouse, district.

use wire::Decimal;

use super::{Part, RowSource, Selection, address, data, money, stream, string};
use crate::{
    copy::Rows,
    draw::Draw,
    tpcc::cardinalities::{DISTRICTS, ITEMS, ORDERS},
};

impl RowSource {
    pub(super) fn items(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::ITEM, part);
        let numbers = part.slice(ITEMS);
        let count = numbers.clone().count();
        let mut original = Selection::tenth(i32::try_from(count).unwrap_or(0));
        for number in numbers {
            rows.begin(5);
            rows.int(number);
            rows.int(draw.int(1, 10_000));
            string(rows, &mut draw, 14, 24);
            rows.decimal(Decimal::new(draw.int(100, 10_000).into(), 2));
            let original = original.next(&mut draw);
            data(rows, &mut draw, original);
        }
        u32::try_from(count).unwrap_or(0)
    }

    pub(super) fn stock(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::STOCK, part);
        let numbers = part.slice(ITEMS);
        let count = numbers.clone().count();
        let mut original = Selection::tenth(i32::try_from(count).unwrap_or(0));
        for number in numbers {
            rows.begin(17);
            rows.int(number);
            rows.int(part.warehouse);
            rows.int(draw.int(10, 100));
            for _ in 0..DISTRICTS {
                rows.sized(|out| draw.alphanumeric(out, 24));
            }
            rows.int(0);
            rows.int(0);
            rows.int(0);
            let original = original.next(&mut draw);
            data(rows, &mut draw, original);
        }
        u32::try_from(count).unwrap_or(0)
    }

    pub(super) fn warehouse(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::WAREHOUSE, part);
        rows.begin(9);
        rows.int(part.warehouse);
        string(rows, &mut draw, 6, 10);
        address(rows, &mut draw);
        rows.decimal(tax(&mut draw));
        rows.decimal(money(300_000));
        1
    }

    pub(super) fn districts(&self, part: Part, rows: &mut Rows<'_>) -> u32 {
        let mut draw = self.draw(stream::DISTRICT, part);
        for district in 1..=DISTRICTS {
            rows.begin(11);
            rows.int(district);
            rows.int(part.warehouse);
            string(rows, &mut draw, 6, 10);
            address(rows, &mut draw);
            rows.decimal(tax(&mut draw));
            rows.decimal(money(30_000));
            rows.int(ORDERS + 1);
        }
        DISTRICTS.unsigned_abs()
    }
}

fn tax(draw: &mut Draw) -> Decimal {
    Decimal::new(draw.int(0, 2000).into(), 4)
}
