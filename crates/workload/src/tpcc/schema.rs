//! Schema `spec`: the nine tables of clause 1.3 with the names of the text, two secondary indexes,
//! the optional foreign keys, and the table that remembers the load. Schema `bmsql` will stand
//! beside it.

/// Largest scale: identifiers and row numbers stay far from the ends of their types.
pub const WAREHOUSES_MAX: i32 = 100_000;
/// Clause 1.2.1.
pub const DISTRICTS: i32 = 10;
/// Customers of a district.
pub const CUSTOMERS: i32 = 3000;
/// Orders of a district after the load.
pub const ORDERS: i32 = 3000;
/// Orders from this one on are undelivered after the load.
pub const FIRST_NEW_ORDER: i32 = 2101;
/// Items, whatever the scale.
pub const ITEMS: i32 = 100_000;
/// An item number that no item has (clause 2.4.1.5, item 1).
pub const UNUSED_ITEM: i32 = ITEMS + 1;

/// The table that says what was loaded.
pub const LOAD_TABLE: &str = "pgdyno_load";
/// Its DDL.
pub const LOAD_TABLE_DDL: &str =
    "CREATE TABLE pgdyno_load (key text PRIMARY KEY, value text NOT NULL)";

/// A table of the workload.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Name, without schema.
    pub name: &'static str,
    /// Columns in physical order, each with its type.
    pub columns: &'static [(&'static str, &'static str)],
    /// Columns of the primary key; none for `history`.
    pub primary_key: &'static [&'static str],
    /// Bytes of the table, its primary key and its secondary indexes per warehouse, as
    /// `pg_total_relation_size` says on PostgreSQL 18 after the load of ten warehouses (8 kB
    /// pages); the whole of `item`, which does not grow.
    pub disk_bytes_per_warehouse: u64,
}

impl Table {
    /// `CREATE TABLE`, without keys: they are built after the rows are there.
    #[must_use]
    pub fn ddl(&self) -> String {
        let columns: Vec<String> =
            self.columns.iter().map(|(name, kind)| format!("{name} {kind}")).collect();
        format!("CREATE TABLE {} ({})", self.name, columns.join(", "))
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
    /// Whether it becomes the primary key.
    pub primary: bool,
}

const NN: &str = "integer NOT NULL";

// Types: identifiers, counters and quantities are 4-byte integers; the text asks for at least
// numeric(4) to numeric(8), which is narrower. Amounts that only grow are numeric(18,2) instead of
// numeric(12,2): without think time a warehouse takes 10^10 in some hours, and a run must not end
// with "numeric field overflow". Clause 1.3.1 permits wider fields.
/// Tables in the order of the text, which is also an order in which foreign keys can be added.
pub const TABLES: [Table; 9] = [
    Table {
        name: "warehouse",
        columns: &[
            ("w_id", NN),
            ("w_name", "varchar(10) NOT NULL"),
            ("w_street_1", "varchar(20) NOT NULL"),
            ("w_street_2", "varchar(20) NOT NULL"),
            ("w_city", "varchar(20) NOT NULL"),
            ("w_state", "char(2) NOT NULL"),
            ("w_zip", "char(9) NOT NULL"),
            ("w_tax", "numeric(4,4) NOT NULL"),
            ("w_ytd", "numeric(18,2) NOT NULL"),
        ],
        primary_key: &["w_id"],
        disk_bytes_per_warehouse: 8_192,
    },
    Table {
        name: "district",
        columns: &[
            ("d_id", NN),
            ("d_w_id", NN),
            ("d_name", "varchar(10) NOT NULL"),
            ("d_street_1", "varchar(20) NOT NULL"),
            ("d_street_2", "varchar(20) NOT NULL"),
            ("d_city", "varchar(20) NOT NULL"),
            ("d_state", "char(2) NOT NULL"),
            ("d_zip", "char(9) NOT NULL"),
            ("d_tax", "numeric(4,4) NOT NULL"),
            ("d_ytd", "numeric(18,2) NOT NULL"),
            ("d_next_o_id", NN),
        ],
        primary_key: &["d_w_id", "d_id"],
        disk_bytes_per_warehouse: 8_192,
    },
    Table {
        name: "customer",
        columns: &[
            ("c_id", NN),
            ("c_d_id", NN),
            ("c_w_id", NN),
            ("c_first", "varchar(16) NOT NULL"),
            ("c_middle", "char(2) NOT NULL"),
            ("c_last", "varchar(16) NOT NULL"),
            ("c_street_1", "varchar(20) NOT NULL"),
            ("c_street_2", "varchar(20) NOT NULL"),
            ("c_city", "varchar(20) NOT NULL"),
            ("c_state", "char(2) NOT NULL"),
            ("c_zip", "char(9) NOT NULL"),
            ("c_phone", "char(16) NOT NULL"),
            ("c_since", "timestamp NOT NULL"),
            ("c_credit", "char(2) NOT NULL"),
            ("c_credit_lim", "numeric(12,2) NOT NULL"),
            ("c_discount", "numeric(4,4) NOT NULL"),
            ("c_balance", "numeric(18,2) NOT NULL"),
            ("c_ytd_payment", "numeric(18,2) NOT NULL"),
            ("c_payment_cnt", NN),
            ("c_delivery_cnt", NN),
            ("c_data", "varchar(500) NOT NULL"),
        ],
        primary_key: &["c_w_id", "c_d_id", "c_id"],
        disk_bytes_per_warehouse: 21_290_188,
    },
    Table {
        name: "history",
        columns: &[
            ("h_c_id", NN),
            ("h_c_d_id", NN),
            ("h_c_w_id", NN),
            ("h_d_id", NN),
            ("h_w_id", NN),
            ("h_date", "timestamp NOT NULL"),
            ("h_amount", "numeric(6,2) NOT NULL"),
            ("h_data", "varchar(24) NOT NULL"),
        ],
        primary_key: &[],
        disk_bytes_per_warehouse: 2_659_942,
    },
    Table {
        name: "orders",
        columns: &[
            ("o_id", NN),
            ("o_d_id", NN),
            ("o_w_id", NN),
            ("o_c_id", NN),
            ("o_entry_d", "timestamp NOT NULL"),
            ("o_carrier_id", "integer"),
            ("o_ol_cnt", NN),
            ("o_all_local", NN),
        ],
        primary_key: &["o_w_id", "o_d_id", "o_id"],
        disk_bytes_per_warehouse: 3_902_668,
    },
    Table {
        name: "new_order",
        columns: &[("no_o_id", NN), ("no_d_id", NN), ("no_w_id", NN)],
        primary_key: &["no_w_id", "no_d_id", "no_o_id"],
        disk_bytes_per_warehouse: 688_128,
    },
    Table {
        name: "item",
        columns: &[
            ("i_id", NN),
            ("i_im_id", NN),
            ("i_name", "varchar(24) NOT NULL"),
            ("i_price", "numeric(5,2) NOT NULL"),
            ("i_data", "varchar(50) NOT NULL"),
        ],
        primary_key: &["i_id"],
        disk_bytes_per_warehouse: 13_041_664,
    },
    Table {
        name: "stock",
        columns: &[
            ("s_i_id", NN),
            ("s_w_id", NN),
            ("s_quantity", NN),
            ("s_dist_01", "char(24) NOT NULL"),
            ("s_dist_02", "char(24) NOT NULL"),
            ("s_dist_03", "char(24) NOT NULL"),
            ("s_dist_04", "char(24) NOT NULL"),
            ("s_dist_05", "char(24) NOT NULL"),
            ("s_dist_06", "char(24) NOT NULL"),
            ("s_dist_07", "char(24) NOT NULL"),
            ("s_dist_08", "char(24) NOT NULL"),
            ("s_dist_09", "char(24) NOT NULL"),
            ("s_dist_10", "char(24) NOT NULL"),
            ("s_ytd", NN),
            ("s_order_cnt", NN),
            ("s_remote_cnt", NN),
            ("s_data", "varchar(50) NOT NULL"),
        ],
        primary_key: &["s_w_id", "s_i_id"],
        disk_bytes_per_warehouse: 37_896_192,
    },
    Table {
        name: "order_line",
        columns: &[
            ("ol_o_id", NN),
            ("ol_d_id", NN),
            ("ol_w_id", NN),
            ("ol_number", NN),
            ("ol_i_id", NN),
            ("ol_supply_w_id", NN),
            ("ol_delivery_d", "timestamp"),
            ("ol_quantity", NN),
            ("ol_amount", "numeric(6,2) NOT NULL"),
            ("ol_dist_info", "char(24) NOT NULL"),
        ],
        primary_key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
        disk_bytes_per_warehouse: 38_147_686,
    },
];

/// Bytes on disk after the load: tables, keys and indexes.
#[must_use]
pub fn disk_bytes(warehouses: i32) -> u64 {
    let warehouses = u64::from(warehouses.unsigned_abs());
    TABLES
        .iter()
        .map(|table| {
            let times = if table.name == "item" { 1 } else { warehouses };
            table.disk_bytes_per_warehouse * times
        })
        .sum()
}

/// Finding customers by last name, in the order in which the text counts them.
const CUSTOMER_BY_NAME: &str =
    "CREATE INDEX customer_by_name ON customer (c_w_id, c_d_id, c_last, c_first)";
/// Finding a customer's last order.
const ORDERS_BY_CUSTOMER: &str =
    "CREATE INDEX orders_by_customer ON orders (o_w_id, o_d_id, o_c_id, o_id)";

/// All indexes, those of the largest tables first.
#[must_use]
pub fn indexes() -> Vec<Index> {
    let key = |name: &str| {
        let table = TABLES.iter().find(|table| table.name == name)?;
        let columns = table.primary_key.join(", ");
        let ddl = format!("CREATE UNIQUE INDEX {} ON {name} ({columns})", table.key_name());
        Some(Index { name: table.key_name(), table: table.name, ddl, primary: true })
    };
    let secondary = |name: &str, table, ddl: &str| {
        Some(Index { name: name.to_owned(), table, ddl: ddl.to_owned(), primary: false })
    };
    [
        key("order_line"),
        key("stock"),
        secondary("customer_by_name", "customer", CUSTOMER_BY_NAME),
        secondary("orders_by_customer", "orders", ORDERS_BY_CUSTOMER),
        key("customer"),
        key("orders"),
        key("item"),
        key("new_order"),
        key("district"),
        key("warehouse"),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `ALTER TABLE … ADD` for the references of clause 1.4; the referenced keys come first.
pub const FOREIGN_KEYS: [(&str, &str); 10] = [
    ("district", "FOREIGN KEY (d_w_id) REFERENCES warehouse (w_id)"),
    ("customer", "FOREIGN KEY (c_w_id, c_d_id) REFERENCES district (d_w_id, d_id)"),
    (
        "history",
        "FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)",
    ),
    ("history", "FOREIGN KEY (h_w_id, h_d_id) REFERENCES district (d_w_id, d_id)"),
    ("orders", "FOREIGN KEY (o_w_id, o_d_id, o_c_id) REFERENCES customer (c_w_id, c_d_id, c_id)"),
    (
        "new_order",
        "FOREIGN KEY (no_w_id, no_d_id, no_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    ),
    ("stock", "FOREIGN KEY (s_w_id) REFERENCES warehouse (w_id)"),
    ("stock", "FOREIGN KEY (s_i_id) REFERENCES item (i_id)"),
    (
        "order_line",
        "FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) REFERENCES orders (o_w_id, o_d_id, o_id)",
    ),
    ("order_line", "FOREIGN KEY (ol_supply_w_id, ol_i_id) REFERENCES stock (s_w_id, s_i_id)"),
];
