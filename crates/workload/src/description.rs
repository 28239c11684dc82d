//! What a workload is, told without a server: the same record for all of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wire::Statement;

use crate::{
    dataset::{Dataset, Table},
    witness::WitnessQuery,
    written::WrittenTables,
};

/// A workload, for plans, reports and checks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Description {
    /// Its kind, as a specification names it.
    pub name: String,
    /// Raised whenever the rows loaded, the requests or the statements change.
    pub version: u32,
    /// Kinds of transactions, in the order of their numbers.
    pub kinds: Vec<String>,
    /// Share of each kind; they sum up to 1.
    pub mix: BTreeMap<String, f64>,
    /// What is prepared.
    pub statements: Vec<PreparedSql>,
    /// Tables that are loaded.
    pub tables: Vec<LoadedTable>,
    /// `CREATE INDEX` of each index.
    pub indexes: Vec<String>,
    /// What must hold after the load and after any run.
    pub conditions: Vec<Condition>,
    /// How what was committed is found again, by kind; kinds that leave nothing are missing.
    pub witnesses: Vec<WitnessQuery>,
    /// Tables whose rows it changes, by kind; kinds that only read are missing.
    pub writes: Vec<WrittenTables>,
    /// What holds between the load and the first transaction.
    pub load_checks: Vec<LoadCheck>,
    /// Where the workload differs from its text, and why.
    pub deviations: Vec<Deviation>,
    /// Tables with their indexes after the load, in bytes.
    pub disk_bytes_estimate: u64,
}

/// SQL with a name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct NamedSql {
    /// The name.
    pub name: String,
    /// The SQL.
    pub sql: String,
}

/// A statement that sessions prepare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PreparedSql {
    /// The name.
    pub name: String,
    /// The SQL, with `$1`, `$2`, …
    pub sql: String,
    /// Types of the parameters as they are prepared, by the names of SQL: with other ones a
    /// statement may have another plan, or none. `unknown`: the server infers it.
    pub parameters: Vec<String>,
}

impl PreparedSql {
    /// Of statements.
    #[must_use]
    pub fn of(statements: &[Statement]) -> Vec<Self> {
        let prepared = |one: &Statement| Self {
            name: one.name.clone(),
            sql: one.sql.clone(),
            parameters: one.params.iter().map(|kind| kind.sql_name().to_owned()).collect(),
        };
        statements.iter().map(prepared).collect()
    }
}

/// A table that is loaded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoadedTable {
    /// Name, without schema.
    pub name: String,
    /// Rows after the load, exactly.
    pub rows: u64,
    /// `CREATE TABLE`.
    pub ddl: String,
}

/// A condition of consistency.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Condition {
    /// Its number; of TPC-C that of clause 3.3.2.
    pub number: u32,
    /// What must hold.
    pub title: String,
    /// Returns the rows that violate it.
    pub sql: String,
}

/// A check that holds between the load and the first transaction: a query of one value, and the
/// value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LoadCheck {
    /// What is counted.
    pub name: String,
    /// Returns one number.
    pub sql: String,
    /// The number.
    pub expected: u64,
}

impl LoadCheck {
    /// The rows of a table.
    #[must_use]
    pub fn rows(table: &str, expected: u64) -> Self {
        let sql = format!("SELECT count(*) FROM {table}");
        Self { name: format!("rows of {table}"), sql, expected }
    }
}

/// A difference from the text that a workload follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Deviation {
    /// What is otherwise.
    pub what: String,
    /// Why.
    pub why: String,
    /// The clause of TPC-C 5.11, or `pgbench`.
    pub clause: String,
}

impl Deviation {
    /// One of them.
    #[must_use]
    pub fn new(what: impl Into<String>, why: &str, clause: &str) -> Self {
        Self { what: what.into(), why: why.to_owned(), clause: clause.to_owned() }
    }
}

/// The tables of a dataset, and how many bytes they take with their indexes.
#[must_use]
pub fn loaded(dataset: &dyn Dataset) -> (Vec<LoadedTable>, u64) {
    let table = |one: &Table| {
        let ddl = one.ddl(&[]);
        LoadedTable { name: one.name.clone(), rows: one.rows, ddl }
    };
    let bytes = dataset.tables().iter().map(|table| table.disk_bytes).sum();
    (dataset.tables().iter().map(table).collect(), bytes)
}
