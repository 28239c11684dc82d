//! The files of an export: one for each table, by the names and with the columns that
//! `BenchmarkSQL` 5 writes them (its option `fileLocation`) and reads them (`tableCopies.sql`); for
//! schema `spec` the tables' own.

use schemars::JsonSchema;
use serde::Serialize;

use super::{
    rows::{RowSource, Target},
    schema::{CONFIG_TABLE, Index, Schema},
    spec::TpccSpec,
};
use crate::csv::{self, Column, Kind};

/// The file that says what the others hold; the last four rows of the schema `bmsql`.
pub const CONFIG_FILE: &str = "config.csv";

/// The files, and the SQL that a load from them needs beside `CREATE TABLE` and COPY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CsvFiles {
    /// One for each table, the largest first.
    pub files: Vec<CsvFile>,
    /// Run before the tables are created.
    pub before: Vec<String>,
    /// Run when the rows are there.
    pub after: Vec<String>,
}

/// A file of an export.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CsvFile {
    /// Its name.
    pub name: String,
    /// The table whose rows it holds; none where the schema has no table for them.
    pub table: Option<&'static str>,
    /// The table's columns, in the file's order, with commas.
    pub columns: String,
    /// How NULL is written.
    pub null: &'static str,
    /// Bytes, estimated.
    pub bytes: u64,
    #[serde(skip)]
    target: Option<Target>,
}

/// All files of a scale, the largest first.
#[must_use]
pub fn files(schema: Schema, warehouses: i32) -> Vec<CsvFile> {
    let file = |target: Target| {
        let times = if target.grows() { warehouses.unsigned_abs() } else { 1 };
        CsvFile {
            name: name(schema, target),
            table: Some(schema.name(target.table())),
            columns: columns(schema, target).join(", "),
            null: csv::NULL,
            bytes: bytes_per_warehouse(target) * u64::from(times),
            target: Some(target),
        }
    };
    let config = CsvFile {
        name: CONFIG_FILE.to_owned(),
        table: (schema == Schema::Bmsql).then_some(CONFIG_TABLE),
        columns: "cfg_name, cfg_value".to_owned(),
        null: csv::NULL,
        bytes: 64,
        target: None,
    };
    Target::ALL.into_iter().map(file).chain([config]).collect()
}

/// What a load from files needs.
#[must_use]
pub fn describe(spec: &TpccSpec) -> CsvFiles {
    let schema = spec.schema;
    let before = schema.sequences().iter().map(|name| format!("CREATE SEQUENCE {name}"));
    let keys = schema.indexes().into_iter().map(|index| match index {
        Index { table, columns, name, primary: true, .. } => {
            format!("ALTER TABLE {table} ADD CONSTRAINT {name} PRIMARY KEY ({columns})")
        }
        Index { ddl, .. } => ddl,
    });
    let references = schema.foreign_keys().iter().filter(|_| spec.foreign_keys);
    let references = references.map(|(table, key)| format!("ALTER TABLE {table} ADD {key}"));
    // What stands in the configuration comes with its file.
    let after: Vec<String> = keys.chain(references).chain(schema.finish(&[])).collect();
    CsvFiles { files: files(schema, spec.warehouses), before: before.collect(), after }
}

impl CsvFile {
    /// Rows of the workload's table; none for [`CONFIG_FILE`].
    #[must_use]
    pub fn rows(&self, rows: &RowSource) -> Option<u64> {
        self.target.map(|target| rows.rows(target))
    }

    /// Number of its batches.
    #[must_use]
    pub fn batches(&self, rows: &RowSource) -> u32 {
        self.target.map_or(1, |target| rows.batches(target))
    }

    /// Replaces `out` by the lines of a batch; returns how many. `binary` is room to work in, used
    /// again from batch to batch; `config` are the lines of [`CONFIG_FILE`].
    pub fn batch(
        &self,
        rows: &RowSource,
        number: u32,
        config: &[(&str, i32)],
        binary: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> u32 {
        out.clear();
        let Some(target) = self.target else {
            for (name, value) in config {
                out.extend_from_slice(format!("{name},{value}\n").as_bytes());
            }
            return u32::try_from(config.len()).unwrap_or(0);
        };
        let count = rows.batch(target, number, binary);
        csv::append(binary, &places(rows.schema(), target), out);
        count
    }
}

fn name(schema: Schema, target: Target) -> String {
    let name = match (schema, target) {
        (Schema::Bmsql, Target::History) => "cust-hist",
        (Schema::Bmsql, Target::Orders) => "order",
        (Schema::Bmsql, Target::OrderLine) => "order-line",
        (Schema::Bmsql, Target::NewOrder) => "new-order",
        (_, target) => target.table(),
    };
    format!("{name}.csv")
}

/// Columns in the file's order: physical, but for tables whose key `BenchmarkSQL` turns round.
fn columns(schema: Schema, target: Target) -> Vec<&'static str> {
    let mut columns: Vec<&str> =
        schema.table(target).columns.iter().map(|(name, _)| *name).collect();
    if schema == Schema::Bmsql {
        match target {
            Target::Stock | Target::District => columns.swap(0, 1),
            Target::Customer => columns.swap(0, 2),
            Target::Orders => columns[..3].rotate_right(1),
            _ => {}
        }
    }
    columns
}

/// Where the rows have the file's columns.
fn places(schema: Schema, target: Target) -> Vec<Column> {
    let made = schema.copy_columns(target);
    let made: Vec<&str> = made.split(", ").collect();
    let kinds = schema.table(target).columns;
    let column = |name: &&str| {
        let place = made.iter().position(|made| made == name)?;
        let (_, kind) = kinds.iter().find(|(column, _)| column == name)?;
        Some(Column { place, kind: Kind::of(kind) })
    };
    columns(schema, target).iter().filter_map(column).collect()
}

/// Bytes of the lines of a warehouse; of all items.
fn bytes_per_warehouse(target: Target) -> u64 {
    match target {
        Target::Stock => 31_200_000,
        Target::OrderLine => 23_000_000,
        Target::Customer => 17_800_000,
        Target::History => 2_300_000,
        Target::Orders => 1_600_000,
        Target::Item => 7_600_000,
        Target::NewOrder => 100_000,
        Target::District => 1_000,
        Target::Warehouse => 100,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_those_that_benchmarksql_copies() {
        let files = files(Schema::Bmsql, 1);
        let of = |name: &str| {
            let file = files.iter().find(|file| file.name == name).expect("a file");
            (file.table.unwrap_or_default(), file.columns.clone())
        };
        for (name, table, columns) in [
            ("config.csv", "bmsql_config", "cfg_name, cfg_value"),
            ("warehouse.csv", "bmsql_warehouse", "w_id, w_ytd, w_tax, w_name, w_street_1"),
            ("item.csv", "bmsql_item", "i_id, i_name, i_price, i_data, i_im_id"),
            ("stock.csv", "bmsql_stock", "s_i_id, s_w_id, s_quantity, s_ytd, s_order_cnt"),
            ("district.csv", "bmsql_district", "d_id, d_w_id, d_ytd, d_tax, d_next_o_id"),
            ("customer.csv", "bmsql_customer", "c_id, c_d_id, c_w_id, c_discount, c_credit"),
            ("cust-hist.csv", "bmsql_history", "hist_id, h_c_id, h_c_d_id, h_c_w_id, h_d_id"),
            ("order.csv", "bmsql_oorder", "o_id, o_w_id, o_d_id, o_c_id, o_carrier_id"),
            ("order-line.csv", "bmsql_order_line", "ol_w_id, ol_d_id, ol_o_id, ol_number"),
            ("new-order.csv", "bmsql_new_order", "no_w_id, no_d_id, no_o_id"),
        ] {
            let (of_table, all) = of(name);
            assert_eq!(of_table, table);
            assert!(all.starts_with(columns), "{name}: {all}");
        }
        assert_eq!(files.len(), 10);
    }

    #[test]
    fn every_column_of_a_table_is_in_its_file_once() {
        for schema in [Schema::Spec, Schema::Bmsql] {
            for target in Target::ALL {
                let mut columns = columns(schema, target);
                assert_eq!(places(schema, target).len(), columns.len());
                let mut all: Vec<&str> =
                    schema.table(target).columns.iter().map(|(name, _)| *name).collect();
                columns.sort_unstable();
                all.sort_unstable();
                assert_eq!(columns, all);
            }
        }
    }
}
