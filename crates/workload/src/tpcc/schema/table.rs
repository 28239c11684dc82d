//! What a table and an index consist of.

/// A table of the workload.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name, without schema.
    pub name: &'static str,
    /// Columns in physical order, each with its type.
    pub columns: &'static [(&'static str, &'static str)],
    /// Columns of the primary key that is built after the load; none for `history` of the text.
    pub primary_key: &'static [&'static str],
    /// Bytes of the table, its primary key and its secondary indexes per warehouse, as
    /// `pg_total_relation_size` says on PostgreSQL 18 after the load of ten warehouses (8 kB
    /// pages); the whole of `item`, which does not grow.
    pub disk_bytes_per_warehouse: u64,
    /// Whether it has rows for each warehouse.
    pub grows: bool,
}

impl Table {
    /// `CREATE TABLE`, without keys: they are built after the rows are there.
    #[must_use]
    pub fn ddl(&self) -> String {
        format!("CREATE TABLE {} ({})", self.name, self.column_list())
    }

    /// Columns with their types, with commas.
    #[must_use]
    pub fn column_list(&self) -> String {
        let column = |(name, kind): &(&str, &str)| format!("{name} {kind}");
        self.columns.iter().map(column).collect::<Vec<String>>().join(", ")
    }

    /// The column that says of which warehouse a row is; `None` where the primary key does not
    /// contain it, which forbids to partition by it.
    #[must_use]
    pub fn warehouse_column(&self) -> Option<&'static str> {
        let ours = |name: &&'static str| *name == "w_id" || name.ends_with("_w_id");
        if self.primary_key.is_empty() {
            // Of the two in history, the warehouse that was paid to; loaded rows have it in both.
            return self.columns.iter().map(|(name, _)| *name).rfind(ours);
        }
        self.primary_key.iter().copied().find(ours)
    }

    /// Bytes after the load, with keys and indexes.
    #[must_use]
    pub fn disk_bytes(&self, warehouses: i32) -> u64 {
        let times = if self.grows { warehouses.unsigned_abs() } else { 1 };
        self.disk_bytes_per_warehouse * u64::from(times)
    }

    /// Name of the primary key, as PostgreSQL would choose it.
    #[must_use]
    pub fn key_name(&self) -> String {
        format!("{}_pkey", self.name)
    }
}

/// An index to build after the rows are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Name.
    pub name: String,
    /// Table.
    pub table: &'static str,
    /// `CREATE [UNIQUE] INDEX`.
    pub ddl: String,
    /// What stands between its parentheses.
    pub columns: String,
    /// Whether no two rows may be alike in it.
    pub unique: bool,
    /// Whether it becomes the primary key.
    pub primary: bool,
}

/// An index beside the primary keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Secondary {
    pub(super) name: &'static str,
    pub(super) table: &'static str,
    pub(super) unique: bool,
    pub(super) columns: &'static str,
}

/// Most columns are numbers that must be there.
pub(super) const NN: &str = "integer NOT NULL";
