//! What a loader must know of the database that it fills: tables, rows as COPY data in batches,
//! indexes, references, and what is to be remembered of the load. No sockets, no order of work: the
//! loader decides on streams, phases, vacuum and what happens when it is stopped.
//!
//! Rows of a batch depend on the specification and the batch's number alone, so that any worker can
//! make any batch, in any order, and again after a crash.

use std::{ops::Range, sync::Arc};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A database of rows that follow from a specification.
pub trait Dataset: Send + Sync + 'static {
    /// Value of the key `workload` in the table that remembers the load: `tpcc`, `pgbench`.
    fn name(&self) -> &'static str;

    /// Tables to create, in an order in which foreign keys can be added.
    fn tables(&self) -> &[Table];

    /// Units of which the database consists: warehouses, branches. Rows of a table that grows with
    /// them depend on the seed and their unit, never on how many units there are.
    fn units(&self) -> u32 {
        1
    }

    /// The key that says how many units there are, in the specification and in the record.
    fn unit_name(&self) -> &'static str {
        "units"
    }

    /// How a table grows with the units; `None` where it does not, or where batches hold rows of
    /// several units. `table` is an index into [`Dataset::tables`].
    fn growth(&self, _table: usize) -> Option<Growth> {
        None
    }

    /// How the tables that have a column for it are partitioned by unit.
    fn partitions(&self) -> Option<Partitions> {
        None
    }

    /// Sequences, created before the tables and dropped after them.
    fn sequences(&self) -> &'static [&'static str] {
        &[]
    }

    /// SQL that creates what tables alone do not have (sequences, rows of settings), in order,
    /// right after the tables and in the same transaction. None by default.
    fn extras(&self) -> Vec<String> {
        Vec::new()
    }

    /// Replaces `out` by the rows of a batch in binary COPY format, without header and trailer;
    /// returns how many. `table` is an index into [`Dataset::tables`].
    ///
    /// # Panics
    ///
    /// If the table has no such batch: a bug of the loader.
    fn batch(&self, table: usize, number: u32, out: &mut Vec<u8>) -> u32;

    /// As [`Dataset::batch`], of the rows of some units only: batches are numbered from 0 to
    /// [`batches_of`]. By default the units come one after the other.
    ///
    /// # Panics
    ///
    /// As [`Dataset::batch`].
    fn batch_of(&self, table: usize, units: &Units, number: u32, out: &mut Vec<u8>) -> u32 {
        self.batch(table, batch_number(self, table, units, number), out)
    }

    /// Indexes to build after the rows are there, those that take longest first.
    fn indexes(&self) -> Vec<Index>;

    /// `ALTER TABLE` statements that add the references, in order, after the indexes; empty where
    /// the specification asks for none.
    fn foreign_keys(&self) -> Vec<String>;

    /// SQL to run once, statement by statement, when rows, indexes and references are there; and
    /// again when units were added.
    fn finish(&self) -> Vec<String> {
        Vec::new()
    }

    /// SQL whose one row is true while nothing was run on the data since they were loaded.
    fn untouched(&self) -> Option<String> {
        None
    }

    /// What the table that remembers the load keeps beside the name: everything that must be known
    /// to make the same rows again, as pairs of key and value. The loader adds what it knows itself
    /// (the time that rows carry).
    fn record(&self) -> Vec<(&'static str, String)>;

    /// The specification, resolved, for the report of the load.
    fn spec(&self) -> Value;

    /// Constants of the load that a later run must respect (`c_load`); null where there are none.
    fn constants(&self) -> Value {
        Value::Null
    }
}

/// How many batches the rows of some units have.
#[must_use]
pub fn batches_of(dataset: &dyn Dataset, table: usize, units: &Units) -> u32 {
    match dataset.growth(table) {
        Some(growth) => growth.batches_per_unit * units.count(),
        None => dataset.tables().get(table).map_or(0, |table| table.batches),
    }
}

/// Which batch of the whole table is the `number`-th of these units, one unit after the other.
#[must_use]
pub fn batch_number<D: Dataset + ?Sized>(
    dataset: &D,
    table: usize,
    units: &Units,
    number: u32,
) -> u32 {
    match dataset.growth(table) {
        Some(Growth { batches_per_unit: per_unit, .. }) => {
            units.nth(number / per_unit) * per_unit + number % per_unit
        }
        None => number,
    }
}

/// How a table grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// The column that says of which unit a row is; part of the primary key if there is one.
    /// `None` where a key without it forbids to partition.
    pub column: Option<&'static str>,
    /// Batches of one unit; unit `u` has those from `u * batches_per_unit` on.
    pub batches_per_unit: u32,
}

/// Some of a database's units, by numbers from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Units {
    /// All of a range.
    Range(Range<u32>),
    /// Some, ascending.
    List(Arc<[u32]>),
}

impl Units {
    /// How many.
    #[must_use]
    pub fn count(&self) -> u32 {
        match self {
            Self::Range(range) => range.end - range.start,
            Self::List(list) => u32::try_from(list.len()).unwrap_or(u32::MAX),
        }
    }

    /// The number of the `at`-th of them.
    ///
    /// # Panics
    ///
    /// If there are not so many.
    #[must_use]
    pub fn nth(&self, at: u32) -> u32 {
        assert!(at < self.count(), "unit {at} of {}", self.count());
        match self {
            Self::Range(range) => range.start + at,
            Self::List(list) => usize::try_from(at).map_or(0, |at| list[at]),
        }
    }
}

/// Far more partitions than anybody can plan queries for.
pub const PARTITIONS_MAX: u32 = 10_000;

/// How tables are partitioned by unit.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Partitions {
    /// By what.
    pub by: PartitionBy,
    /// How many partitions each table has.
    #[schemars(range(min = 1, max = PARTITIONS_MAX))]
    pub count: u32,
}

/// By what a table is partitioned.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum PartitionBy {
    /// The server's hash of the unit.
    Hash,
    /// Neighbouring units together.
    Range,
}

/// A table to create and fill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Table {
    /// Name, without schema.
    pub name: String,
    /// Columns with their types, separated by commas: what stands between the parentheses of
    /// `CREATE TABLE`. Without keys: they are built after the rows are there.
    pub columns: String,
    /// Names of the columns that the batches fill, separated by commas, in their order.
    pub copied: String,
    /// Storage parameters, e.g. `fillfactor=100`. The loader may add its own and reset them later.
    pub storage: Vec<String>,
    /// Rows after the load, exactly.
    pub rows: u64,
    /// Batches, numbered from 0; none for a table that starts empty. A batch is some hundred kB.
    pub batches: u32,
    /// Batches that one COPY should stream, for progress and for an even end of the streams.
    pub batches_per_copy: u32,
    /// Bytes of the table with its indexes after the load, estimated.
    pub disk_bytes: u64,
}

impl Table {
    /// `CREATE TABLE`, with more storage parameters than its own.
    #[must_use]
    pub fn ddl(&self, more: &[&str]) -> String {
        let Self { name, columns, storage, .. } = self;
        let storage: Vec<&str> = storage.iter().map(String::as_str).chain(more.to_vec()).collect();
        let with = match storage.as_slice() {
            [] => String::new(),
            storage => format!(" WITH ({})", storage.join(", ")),
        };
        format!("CREATE TABLE {name} ({columns}){with}")
    }

    /// `COPY … FROM STDIN` for any of its batches.
    #[must_use]
    pub fn copy(&self) -> String {
        format!("COPY {} ({}) FROM STDIN (FORMAT binary)", self.name, self.copied)
    }
}

/// An index to build after the rows are there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Table.
    pub table: String,
    /// What stands between the parentheses of `CREATE INDEX`.
    pub columns: String,
    /// Whether no two rows may be alike in it.
    pub unique: bool,
    /// Whether it becomes the primary key, which keeps its name.
    pub primary: bool,
}

impl Index {
    /// `CREATE [UNIQUE] INDEX`.
    #[must_use]
    pub fn ddl(&self) -> String {
        let Self { name, table, columns, .. } = self;
        let unique = if self.unique { "UNIQUE " } else { "" };
        format!("CREATE {unique}INDEX {name} ON {table} ({columns})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_parameters_of_table_and_loader_stand_together() {
        let mut table = Table {
            name: "t".into(),
            columns: "a int not null, b text".into(),
            copied: "a, b".into(),
            storage: vec!["fillfactor=90".into()],
            rows: 1,
            batches: 1,
            batches_per_copy: 1,
            disk_bytes: 8192,
        };
        let ddl = table.ddl(&["autovacuum_enabled=off"]);
        let columns = "CREATE TABLE t (a int not null, b text)";
        assert_eq!(ddl, format!("{columns} WITH (fillfactor=90, autovacuum_enabled=off)"));
        assert_eq!(table.copy(), "COPY t (a, b) FROM STDIN (FORMAT binary)");
        table.storage.clear();
        assert_eq!(table.ddl(&[]), columns);
    }
}
