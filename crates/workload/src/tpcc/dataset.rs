//! The initial database for the loader: tables of the schema, rows of the source.

use serde_json::{Value, json};

use super::{
    constants::of_load,
    kinds::VERSION,
    rows::{RowSource, Target},
    schema,
    spec::{Order, TpccSpec},
};
use crate::dataset::{Dataset, Growth, Index, Partitions, Table, Units, batch_number};

/// A copy is split so that streams end at about the same time.
const COPIES_PER_WAREHOUSE: u32 = 4;

/// Tables and rows of one specification.
#[derive(Clone, Debug)]
pub struct TpccDataset {
    spec: TpccSpec,
    config: [(&'static str, i32); 4],
    rows: RowSource,
    tables: Vec<Table>,
    /// What fills each table; nothing where extras do.
    targets: Vec<Option<Target>>,
}

impl TpccDataset {
    /// Of a specification, what `BenchmarkSQL` keeps of a load, and the rows.
    #[must_use]
    pub fn new(spec: TpccSpec, config: [(&'static str, i32); 4], rows: RowSource) -> Self {
        let tables = spec.schema.tables();
        let target = |table: &schema::Table| {
            Target::ALL.into_iter().find(|target| spec.schema.name(target.table()) == table.name)
        };
        let targets: Vec<Option<Target>> = tables.iter().map(target).collect();
        let describe = |(table, target): (&schema::Table, &Option<Target>)| Table {
            name: table.name.to_owned(),
            columns: table.column_list(),
            copied: target.map_or_else(String::new, |target| spec.schema.copy_columns(target)),
            storage: Vec::new(),
            rows: spec.schema.rows(table, &rows),
            batches: target.map_or(0, |target| rows.batches(target)),
            batches_per_copy: target
                .map_or(1, |target| (target.batches_per_warehouse() / COPIES_PER_WAREHOUSE).max(1)),
            disk_bytes: table.disk_bytes(spec.warehouses_held()),
        };
        let tables = tables.iter().zip(&targets).map(describe).collect();
        Self { spec, config, rows, tables, targets }
    }
}

impl Dataset for TpccDataset {
    fn name(&self) -> &'static str {
        "tpcc"
    }

    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn units(&self) -> u32 {
        self.spec.warehouses_held().unsigned_abs()
    }

    fn unit_name(&self) -> &'static str {
        "warehouses"
    }

    fn growth(&self, table: usize) -> Option<Growth> {
        let target = self.targets[table].filter(|target| target.grows())?;
        let column = self.spec.schema.table(target).warehouse_column();
        Some(Growth { column, batches_per_unit: target.batches_per_warehouse() })
    }

    fn partitions(&self) -> Option<Partitions> {
        self.spec.partitions
    }

    fn sequences(&self) -> &'static [&'static str] {
        self.spec.schema.sequences()
    }

    fn finish(&self) -> Vec<String> {
        self.spec.schema.finish(&self.config)
    }

    fn batch(&self, table: usize, number: u32, out: &mut Vec<u8>) -> u32 {
        let target = self.targets[table];
        assert!(target.is_some(), "{} has no batch {number}", self.tables[table].name);
        target.map_or(0, |target| self.rows.batch(target, number, out))
    }

    fn batch_of(&self, table: usize, units: &Units, number: u32, out: &mut Vec<u8>) -> u32 {
        if self.spec.order == Order::Arrival
            && let Some(target) = self.targets[table]
            && let Some(count) = self.rows.arrived(target, units, number, out)
        {
            return count;
        }
        self.batch(table, batch_number(self, table, units, number), out)
    }

    fn untouched(&self) -> Option<String> {
        Some(self.spec.schema.untouched())
    }

    fn indexes(&self) -> Vec<Index> {
        let index = |index: schema::Index| Index {
            name: index.name,
            table: index.table.to_owned(),
            columns: index.columns,
            unique: index.unique,
            primary: index.primary,
        };
        self.spec.schema.indexes().into_iter().map(index).collect()
    }

    fn foreign_keys(&self) -> Vec<String> {
        if !self.spec.foreign_keys {
            return Vec::new();
        }
        let add = |(table, key): &(&str, &str)| format!("ALTER TABLE {table} ADD {key}");
        self.spec.schema.foreign_keys().iter().map(add).collect()
    }

    fn record(&self) -> Vec<(&'static str, String)> {
        let spec = &self.spec;
        let mut record = vec![
            ("version", VERSION.to_string()),
            ("schema", json!(spec.schema).as_str().unwrap_or_default().to_owned()),
            ("warehouses", spec.warehouses_held().to_string()),
            ("seed", spec.seed.to_string()),
            ("c_last", of_load(spec).c_last.to_string()),
            ("foreign_keys", spec.foreign_keys.to_string()),
            ("partitions", json!(spec.partitions).to_string()),
            ("order", json!(spec.order).as_str().unwrap_or_default().to_owned()),
        ];
        if spec.blocks.is_some() {
            record.push(("warehouses_before", spec.warehouses_before().to_string()));
        }
        record
    }

    fn spec(&self) -> Value {
        json!(self.spec)
    }

    fn constants(&self) -> Value {
        json!(of_load(&self.spec))
    }
}
