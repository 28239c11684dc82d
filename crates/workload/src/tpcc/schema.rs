//! Tables, keys, indexes and references of the two schemas: `spec`, with the names of the text, and
//! `bmsql`, BenchmarkSQL 5's; and the table that remembers the load. Which rows are in the tables
//! is said in [`super::rows`].

mod bmsql;
mod spec;
mod table;

pub use super::spec::Schema;
use super::{
    cardinalities::{FIRST_NEW_ORDER, ORDERS, WAREHOUSES_MAX},
    rows::{RowSource, Target},
};
pub use bmsql::CONFIG_TABLE;
pub use spec::{FOREIGN_KEYS, TABLES};
use table::Secondary;
pub use table::{Index, Table};

/// The table that says what was loaded.
pub const LOAD_TABLE: &str = "pgdyno_load";
/// Its DDL.
pub const LOAD_TABLE_DDL: &str =
    "CREATE TABLE pgdyno_load (key text PRIMARY KEY, value text NOT NULL)";

/// Order in which keys are built, by the names of the text: the largest tables first. The
/// secondary indexes come after the first two.
const KEYS: [&str; 9] = [
    "order_line",
    "stock",
    "customer",
    "history",
    "orders",
    "item",
    "new_order",
    "district",
    "warehouse",
];

impl Schema {
    /// Tables in an order in which foreign keys can be added.
    #[must_use]
    pub fn tables(self) -> &'static [Table] {
        match self {
            Self::Spec => &TABLES,
            Self::Bmsql => &bmsql::TABLES,
        }
    }

    /// Largest scale.
    #[must_use]
    pub fn warehouses_max(self) -> i32 {
        match self {
            Self::Spec => WAREHOUSES_MAX,
            Self::Bmsql => bmsql::WAREHOUSES_MAX,
        }
    }

    /// This schema's name of a table of the text: `orders` is `bmsql_oorder` in schema `bmsql`.
    #[must_use]
    pub fn name(self, table: &'static str) -> &'static str {
        match self {
            Self::Spec => table,
            Self::Bmsql => bmsql::name(table),
        }
    }

    /// SQL with the names of the text in braces, e.g. `SELECT … FROM {orders}`, for this schema.
    #[must_use]
    pub fn sql(self, template: &str) -> String {
        Target::ALL.iter().fold(template.to_owned(), |sql, target| {
            sql.replace(&format!("{{{}}}", target.table()), self.name(target.table()))
        })
    }

    /// The table that these rows fill.
    #[must_use]
    pub fn table(self, target: Target) -> &'static Table {
        let name = self.name(target.table());
        let found = self.tables().iter().find(|table| table.name == name);
        // Both schemas have a table for every target: see the test below.
        found.unwrap_or(&TABLES[0])
    }

    /// Columns that [`RowSource`] makes, in its order, with commas: for `COPY table (…)`.
    #[must_use]
    pub fn copy_columns(self, target: Target) -> String {
        let made = Self::Spec.table(target).columns.iter().map(|(name, _)| *name);
        let more = match (self, target) {
            (Self::Bmsql, Target::History) => Some(bmsql::HISTORY_ID),
            _ => None,
        };
        made.chain(more).collect::<Vec<&str>>().join(", ")
    }

    /// All indexes to build after the rows are there, those of the largest tables first.
    #[must_use]
    pub fn indexes(self) -> Vec<Index> {
        let key = |name: &&'static str| {
            let name = self.name(name);
            let table = self.tables().iter().find(|table| table.name == name)?;
            if table.primary_key.is_empty() {
                return None;
            }
            let columns = table.primary_key.join(", ");
            let ddl = format!("CREATE UNIQUE INDEX {} ON {name} ({columns})", table.key_name());
            let (name, table) = (table.key_name(), table.name);
            Some(Index { name, table, ddl, columns, unique: true, primary: true })
        };
        let secondary = |index: &Secondary| {
            let Secondary { name, table, unique, columns } = *index;
            let word = if unique { "UNIQUE " } else { "" };
            let ddl = format!("CREATE {word}INDEX {name} ON {table} ({columns})");
            let (name, columns) = (name.to_owned(), columns.to_owned());
            Index { name, table, ddl, columns, unique, primary: false }
        };
        let others = match self {
            Self::Spec => &spec::SECONDARY,
            Self::Bmsql => &bmsql::SECONDARY,
        };
        let (first, last) = KEYS.split_at(2);
        let first = first.iter().filter_map(key);
        first.chain(others.iter().map(secondary)).chain(last.iter().filter_map(key)).collect()
    }

    /// Table and `ALTER TABLE … ADD` for the references of clause 1.4.
    #[must_use]
    pub fn foreign_keys(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Spec => &FOREIGN_KEYS,
            Self::Bmsql => &bmsql::FOREIGN_KEYS,
        }
    }

    /// Sequences, created before the tables and dropped after them.
    #[must_use]
    pub fn sequences(self) -> &'static [&'static str] {
        match self {
            Self::Spec => &[],
            Self::Bmsql => &[bmsql::SEQUENCE],
        }
    }

    /// SQL to run, statement by statement, when rows, indexes and references are there; and again
    /// when warehouses were added. `config` is [`Tpcc::config`](super::Tpcc::config).
    #[must_use]
    pub fn finish(self, config: &[(&str, i32)]) -> Vec<String> {
        match self {
            Self::Spec => Vec::new(),
            Self::Bmsql => bmsql::finish(config),
        }
    }

    /// SQL whose one row is true while no New-Order, Payment or Delivery changed what was loaded.
    #[must_use]
    pub fn untouched(self) -> String {
        let [warehouse, district, new_order] =
            ["warehouse", "district", "new_order"].map(|table| self.name(table));
        format!(
            "SELECT (SELECT sum(d_next_o_id) = {next} * count(*) FROM {district}) \
             AND (SELECT sum(w_ytd) = 300000 * count(*) FROM {warehouse}) \
             AND (SELECT count(*) FROM {new_order}) \
             = {open} * (SELECT count(*) FROM {district})",
            next = ORDERS + 1,
            open = ORDERS - FIRST_NEW_ORDER + 1,
        )
    }

    /// Number of rows of a table after the load.
    #[must_use]
    pub fn rows(self, table: &Table, rows: &RowSource) -> u64 {
        let target = Target::ALL.iter().find(|target| self.name(target.table()) == table.name);
        match target {
            Some(target) => rows.rows(*target),
            None => bmsql::CONFIG_ROWS,
        }
    }

    /// Bytes on disk after the load: tables, keys and indexes.
    #[must_use]
    pub fn disk_bytes(self, warehouses: i32) -> u64 {
        self.tables().iter().map(|table| table.disk_bytes(warehouses)).sum()
    }
}

/// All indexes of schema `spec`.
#[must_use]
pub fn indexes() -> Vec<Index> {
    Schema::Spec.indexes()
}

/// Bytes on disk of schema `spec`.
#[must_use]
pub fn disk_bytes(warehouses: i32) -> u64 {
    Schema::Spec.disk_bytes(warehouses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_has_a_table_for_all_rows_and_the_columns_they_fill() {
        for schema in [Schema::Spec, Schema::Bmsql] {
            for target in Target::ALL {
                let table = schema.table(target);
                assert_eq!(table.name, schema.name(target.table()));
                assert_eq!(table.grows, target.grows(), "{}", table.name);
                let mut made: Vec<String> =
                    schema.copy_columns(target).split(", ").map(str::to_owned).collect();
                let mut columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
                made.sort_unstable();
                columns.sort_unstable();
                assert_eq!(made, columns, "{}", table.name);
            }
        }
    }

    #[test]
    fn every_key_and_reference_names_tables_of_its_schema() {
        for schema in [Schema::Spec, Schema::Bmsql] {
            let known = |name: &str| schema.tables().iter().any(|table| table.name == name);
            let keys = schema.tables().iter().filter(|table| !table.primary_key.is_empty());
            let indexes = schema.indexes();
            assert_eq!(indexes.iter().filter(|index| index.primary).count(), keys.count());
            assert!(indexes.iter().all(|index| known(index.table)));
            for (table, key) in schema.foreign_keys() {
                let other = key.split("REFERENCES ").nth(1).and_then(|rest| rest.split(' ').next());
                assert!(known(table) && other.is_some_and(known), "{table} {key}");
            }
        }
    }
}
