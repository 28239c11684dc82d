//! The workload as JSON, for plans, reports and checks.

use serde::Serialize;
use serde_json::{Value, json};
use wire::Timestamp;

use crate::made;

use crate::workload::Workload;

use super::{
    consistency, constants, csv, deviations, faces,
    kinds::{KINDS, VERSION},
    procedures,
    schema::{LOAD_TABLE, LOAD_TABLE_DDL},
    spec::{Face, Schema},
    workload::Tpcc,
};

#[derive(Serialize)]
struct Named<'a> {
    name: &'a str,
    sql: &'a str,
}

#[derive(Serialize)]
struct TableRows {
    name: &'static str,
    rows: u64,
    ddl: String,
}

impl Tpcc {
    /// Name, version, kinds and mix, statements, tables, indexes, conditions, deviations, size.
    #[must_use]
    pub fn describe(&self) -> Value {
        let rows = self.rows(Timestamp(0));
        let statements: Vec<Named<'_>> =
            self.statements().iter().map(|s| Named { name: &s.name, sql: &s.sql }).collect();
        let schema = self.spec().schema;
        let procedures: Vec<Value> = match self.spec().face {
            Face::Statement | Face::Pipeline => Vec::new(),
            Face::Procedure => procedures::sources(schema)
                .map(|(name, sql)| json!({"name": name, "sql": sql}))
                .collect(),
        };
        let tables: Vec<TableRows> = schema
            .tables()
            .iter()
            .map(|table| TableRows {
                name: table.name,
                rows: schema.rows(table, &rows),
                ddl: table.ddl(),
            })
            .collect();
        let mix: serde_json::Map<String, Value> = KINDS
            .iter()
            .zip(self.spec().mix.shares())
            .map(|(kind, share)| ((*kind).to_owned(), json!(share)))
            .collect();
        let indexes: Vec<String> = schema.indexes().into_iter().map(|index| index.ddl).collect();
        json!({
            "name": "tpcc",
            "version": VERSION,
            "schema": schema,
            "spec": self.spec(),
            "kinds": KINDS,
            "mix": mix,
            "statements": statements,
            "procedures": procedures,
            "round_trips": faces::round_trips(self.spec().rules),
            "tables": tables,
            "load_table": {"name": LOAD_TABLE, "ddl": LOAD_TABLE_DDL},
            "indexes": indexes,
            "csv": csv::describe(self.spec()),
            "made": remembering(self.spec().schema),
            "conditions": consistency::conditions(schema, constants::of_load(self.spec())),
            "load_checks": consistency::load_checks(self.spec(), &rows),
            "deviations": deviations::deviations(self.spec()),
            "c_load": constants::of_load(self.spec()),
            "c_run": {
                "c_last": self.constants().last_name.c,
                "c_id": self.constants().customer.c,
                "ol_i_id": self.constants().item.c,
            },
            "disk_bytes_estimate": schema.disk_bytes(self.spec().warehouses),
        })
    }
}

/// SQL by which a load from files looks for what is in the way, and remembers what it made.
fn remembering(schema: Schema) -> Value {
    let tables = schema.tables().iter().map(|table| table.name.to_owned());
    let sequences = schema.sequences().iter().map(|name| (*name).to_owned());
    let own = [LOAD_TABLE, made::TABLE].map(str::to_owned);
    let relations: Vec<String> = tables.chain(sequences).chain(own).collect();
    let indexes: Vec<String> = schema.indexes().into_iter().map(|index| index.name).collect();
    json!({
        "in_the_way": made::in_the_way(&relations, &indexes, "current_schema()"),
        "before": made::creation(&relations),
        "after": [made::hanging()],
    })
}
