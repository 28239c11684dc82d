//! Reads rows back from the binary COPY format.

use wire::{Decimal, Timestamp};
use workload::{
    dataset::Units,
    tpcc::{
        Tpcc,
        rows::{RowSource, Target},
        schema::{TABLES, Table},
    },
};

/// The load's time in these tests.
pub(crate) const LOADED_AT: Timestamp = Timestamp(800_000_000_000_000);

/// A row: the bytes of its fields, `None` for NULL, in the order of the columns.
pub(crate) struct Row {
    table: &'static Table,
    pub(crate) fields: Vec<Option<Vec<u8>>>,
}

impl Row {
    pub(crate) fn bytes(&self, column: &str) -> Option<&[u8]> {
        let columns = self.table.columns;
        let at = columns.iter().position(|(name, _)| *name == column).expect("a column");
        self.fields[at].as_deref()
    }

    pub(crate) fn int(&self, column: &str) -> i32 {
        let bytes = self.bytes(column).expect("not NULL");
        i32::from_be_bytes(bytes.try_into().expect("four bytes"))
    }

    pub(crate) fn text(&self, column: &str) -> &str {
        std::str::from_utf8(self.bytes(column).expect("not NULL")).expect("UTF-8")
    }

    pub(crate) fn decimal(&self, column: &str) -> Decimal {
        Decimal::decode(self.bytes(column).expect("not NULL")).expect("a numeric")
    }

    pub(crate) fn time(&self, column: &str) -> i64 {
        i64::from_be_bytes(self.bytes(column).expect("not NULL").try_into().expect("eight bytes"))
    }
}

/// Rows of batches `from..until` of a table.
pub(crate) fn batches(tpcc: &Tpcc, target: Target, from: u32, until: u32) -> Vec<Row> {
    let source = tpcc.rows(LOADED_AT);
    let mut rows = Vec::new();
    let mut bytes = Vec::new();
    for number in from..until {
        let count = source.batch(target, number, &mut bytes);
        let before = rows.len();
        read(target, &bytes, &mut rows);
        assert_eq!(rows.len() - before, usize::try_from(count).expect("small"));
    }
    rows
}

/// All rows of some warehouses (from 0), with their orders as they arrived.
pub(crate) fn arrived(tpcc: &Tpcc, target: Target, units: &Units) -> Vec<Row> {
    let source = tpcc.rows(LOADED_AT);
    let (mut rows, mut bytes) = (Vec::new(), Vec::new());
    for number in 0..target.batches_per_warehouse() * units.count() {
        let count = source.arrived(target, units, number, &mut bytes).expect("a table of orders");
        let before = rows.len();
        read(target, &bytes, &mut rows);
        assert_eq!(rows.len() - before, usize::try_from(count).expect("small"));
    }
    rows
}

/// All rows of a table.
pub(crate) fn all(tpcc: &Tpcc, target: Target) -> Vec<Row> {
    let source: RowSource = tpcc.rows(LOADED_AT);
    let rows = batches(tpcc, target, 0, source.batches(target));
    assert_eq!(rows.len() as u64, source.rows(target), "the count is known beforehand");
    rows
}

fn read(target: Target, mut bytes: &[u8], rows: &mut Vec<Row>) {
    let table =
        TABLES.iter().find(|table| table.name == target.table()).expect("a table of the schema");
    while let Some((count, rest)) = bytes.split_first_chunk::<2>() {
        assert_eq!(usize::from(u16::from_be_bytes(*count)), table.columns.len());
        bytes = rest;
        let mut fields = Vec::with_capacity(table.columns.len());
        for _ in table.columns {
            let (length, rest) = bytes.split_first_chunk::<4>().expect("a length");
            bytes = rest;
            let value = usize::try_from(i32::from_be_bytes(*length)).ok().map(|length| {
                let (value, rest) = bytes.split_at(length);
                bytes = rest;
                value.to_vec()
            });
            fields.push(value);
        }
        rows.push(Row { table, fields });
    }
}
