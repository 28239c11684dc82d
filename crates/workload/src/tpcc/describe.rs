//! The workload for plans, reports and checks: what all workloads tell, and what only TPC-C has.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use wire::Timestamp;

use crate::{
    description::{Description, LoadedTable, NamedSql, PreparedSql},
    made,
    workload::Workload,
};

use super::{
    consistency, constants,
    csv::{self, CsvFiles},
    deviations,
    faces::{self, RoundTrips},
    kinds::{KINDS, VERSION},
    procedures,
    schema::{LOAD_TABLE, LOAD_TABLE_DDL},
    spec::{Face, LoadConstants, Schema},
    witness,
    workload::Tpcc,
    written,
};

/// What no other workload has.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Particulars {
    /// Tables, their names and indexes.
    pub schema: Schema,
    /// Functions that face `procedure` calls; none for other faces.
    pub procedures: Vec<NamedSql>,
    /// Fewest and most round trips, by face and kind.
    pub round_trips: BTreeMap<String, BTreeMap<String, RoundTrips>>,
    /// The table that remembers a load: its name, and `CREATE TABLE`.
    pub load_table: NamedSql,
    /// What an export writes and a load from files reads.
    pub csv: CsvFiles,
    /// How a load from files remembers what it made.
    pub made: Remembering,
    /// Constants of the rows.
    pub c_load: LoadConstants,
    /// Constants of the requests (clause 2.1.6.1).
    pub c_run: RunConstants,
}

/// Constants C of the three `NURand` functions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct RunConstants {
    /// Of last names.
    pub c_last: i32,
    /// Of customers.
    pub c_id: i32,
    /// Of items.
    pub ol_i_id: i32,
}

/// SQL by which a load from files looks for what is in the way, and remembers what it made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Remembering {
    /// Returns what stands where it would create: `what`, `oid`.
    pub in_the_way: String,
    /// Run after the tables were created.
    pub before: Vec<String>,
    /// Run after indexes and references were added.
    pub after: Vec<String>,
}

impl Tpcc {
    /// What all workloads tell.
    #[must_use]
    pub fn describe(&self) -> Description {
        let rows = self.rows(Timestamp(0));
        let schema = self.spec().schema;
        let tables = schema.tables().iter().map(|table| LoadedTable {
            name: table.name.to_owned(),
            rows: schema.rows(table, &rows),
            ddl: table.ddl(),
        });
        let shares = KINDS.iter().zip(self.spec().mix.shares());
        Description {
            name: "tpcc".to_owned(),
            version: VERSION,
            kinds: self.kinds().to_vec(),
            mix: shares.map(|(kind, share)| ((*kind).to_owned(), share)).collect(),
            statements: PreparedSql::of(self.statements()),
            tables: tables.collect(),
            indexes: schema.indexes().into_iter().map(|index| index.ddl).collect(),
            conditions: consistency::conditions(schema, constants::of_load(self.spec())),
            witnesses: witness::queries(schema),
            writes: written::writes(schema),
            load_checks: consistency::load_checks(self.spec(), &rows),
            deviations: deviations::deviations(self.spec()),
            disk_bytes_estimate: schema.disk_bytes(self.spec().warehouses_held()),
        }
    }

    /// What only TPC-C has.
    #[must_use]
    pub fn particulars(&self) -> Particulars {
        let spec = self.spec();
        let procedures = match spec.face {
            Face::Statement | Face::Pipeline => Vec::new(),
            Face::Procedure => procedures::sources(spec.schema)
                .map(|(name, sql)| NamedSql { name: name.to_owned(), sql })
                .collect(),
        };
        Particulars {
            schema: spec.schema,
            procedures,
            round_trips: faces::round_trips(spec.rules),
            load_table: NamedSql { name: LOAD_TABLE.to_owned(), sql: LOAD_TABLE_DDL.to_owned() },
            csv: csv::describe(spec),
            made: remembering(spec.schema),
            c_load: constants::of_load(spec),
            c_run: RunConstants {
                c_last: self.constants().last_name.c,
                c_id: self.constants().customer.c,
                ol_i_id: self.constants().item.c,
            },
        }
    }
}

fn remembering(schema: Schema) -> Remembering {
    let tables = schema.tables().iter().map(|table| table.name.to_owned());
    let sequences = schema.sequences().iter().map(|name| (*name).to_owned());
    let own = [LOAD_TABLE, made::TABLE].map(str::to_owned);
    let relations: Vec<String> = tables.chain(sequences).chain(own).collect();
    let indexes: Vec<String> = schema.indexes().into_iter().map(|index| index.name).collect();
    Remembering {
        in_the_way: made::in_the_way(&relations, &indexes, "current_schema()"),
        before: made::creation(&relations),
        after: vec![made::hanging()],
    }
}
