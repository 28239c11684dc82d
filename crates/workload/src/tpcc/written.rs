//! The tables whose rows each kind of transaction changes.

use super::{kinds::KINDS, schema::Schema};
use crate::written::WrittenTables;

/// By kind, in the order of [`KINDS`] (clauses 2.4.2, 2.5.2 and 2.7.4).
const WRITES: [&[&str]; 5] = [
    &["{district}", "{orders}", "{new_order}", "{stock}", "{order_line}"],
    &["{warehouse}", "{district}", "{customer}", "{history}"],
    &[],
    &["{new_order}", "{orders}", "{order_line}", "{customer}"],
    &[],
];

/// By kind, under a schema's names.
pub(super) fn writes(schema: Schema) -> Vec<WrittenTables> {
    let of = |(kind, tables): (&&str, &[&str])| {
        WrittenTables::of(kind, tables.iter().map(|table| schema.sql(table)))
    };
    KINDS.iter().zip(WRITES).filter_map(of).collect()
}
