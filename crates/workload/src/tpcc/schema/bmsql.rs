//! Schema `bmsql`: tables, types, order of columns, keys, indexes and references as `BenchmarkSQL`
//! 5.0 and 5.1 create them, so that either program runs on what the other loaded. Fill factors are
//! 5.0's, which sets none.

use super::table::{NN, Secondary, Table};

/// What `BenchmarkSQL` remembers of a load.
pub const CONFIG_TABLE: &str = "bmsql_config";
/// Rows of [`CONFIG_TABLE`].
pub(super) const CONFIG_ROWS: u64 = 4;
/// Largest scale: numbers of histories are 4-byte integers, 30,000 for each warehouse after the
/// load and one for each payment.
pub(super) const WAREHOUSES_MAX: i32 = 60_000;
/// Numbers the rows of `bmsql_history`.
pub(super) const SEQUENCE: &str = "bmsql_hist_id_seq";
/// The column that the text does not have.
pub(super) const HISTORY_ID: &str = "hist_id";

const INT: &str = "integer";
const MONEY: &str = "numeric(12,2)";
const INFO: &str = "char(24)";

/// The tables; columns that are no key may be NULL, as there.
pub(super) const TABLES: [Table; 10] = [
    Table {
        name: CONFIG_TABLE,
        columns: &[("cfg_name", "varchar(30) PRIMARY KEY"), ("cfg_value", "varchar(50)")],
        primary_key: &[],
        disk_bytes_per_warehouse: 24_576,
        grows: false,
    },
    Table {
        name: "bmsql_warehouse",
        columns: &[
            ("w_id", NN),
            ("w_ytd", MONEY),
            ("w_tax", "numeric(4,4)"),
            ("w_name", "varchar(10)"),
            ("w_street_1", "varchar(20)"),
            ("w_street_2", "varchar(20)"),
            ("w_city", "varchar(20)"),
            ("w_state", "char(2)"),
            ("w_zip", "char(9)"),
        ],
        primary_key: &["w_id"],
        disk_bytes_per_warehouse: 5_735,
        grows: true,
    },
    Table {
        name: "bmsql_district",
        columns: &[
            ("d_w_id", NN),
            ("d_id", NN),
            ("d_ytd", MONEY),
            ("d_tax", "numeric(4,4)"),
            ("d_next_o_id", INT),
            ("d_name", "varchar(10)"),
            ("d_street_1", "varchar(20)"),
            ("d_street_2", "varchar(20)"),
            ("d_city", "varchar(20)"),
            ("d_state", "char(2)"),
            ("d_zip", "char(9)"),
        ],
        primary_key: &["d_w_id", "d_id"],
        disk_bytes_per_warehouse: 6_554,
        grows: true,
    },
    Table {
        name: "bmsql_customer",
        columns: &[
            ("c_w_id", NN),
            ("c_d_id", NN),
            ("c_id", NN),
            ("c_discount", "numeric(4,4)"),
            ("c_credit", "char(2)"),
            ("c_last", "varchar(16)"),
            ("c_first", "varchar(16)"),
            ("c_credit_lim", MONEY),
            ("c_balance", MONEY),
            ("c_ytd_payment", MONEY),
            ("c_payment_cnt", INT),
            ("c_delivery_cnt", INT),
            ("c_street_1", "varchar(20)"),
            ("c_street_2", "varchar(20)"),
            ("c_city", "varchar(20)"),
            ("c_state", "char(2)"),
            ("c_zip", "char(9)"),
            ("c_phone", "char(16)"),
            ("c_since", "timestamp"),
            ("c_middle", "char(2)"),
            ("c_data", "varchar(500)"),
        ],
        primary_key: &["c_w_id", "c_d_id", "c_id"],
        disk_bytes_per_warehouse: 21_375_386,
        grows: true,
    },
    Table {
        name: "bmsql_history",
        columns: &[
            (HISTORY_ID, INT),
            ("h_c_id", INT),
            ("h_c_d_id", INT),
            ("h_c_w_id", INT),
            ("h_d_id", INT),
            ("h_w_id", INT),
            ("h_date", "timestamp"),
            ("h_amount", "numeric(6,2)"),
            ("h_data", "varchar(24)"),
        ],
        primary_key: &[HISTORY_ID],
        disk_bytes_per_warehouse: 3_331_687,
        grows: true,
    },
    Table {
        name: "bmsql_oorder",
        columns: &[
            ("o_w_id", NN),
            ("o_d_id", NN),
            ("o_id", NN),
            ("o_c_id", INT),
            ("o_carrier_id", INT),
            ("o_ol_cnt", INT),
            ("o_all_local", INT),
            ("o_entry_d", "timestamp"),
        ],
        primary_key: &["o_w_id", "o_d_id", "o_id"],
        disk_bytes_per_warehouse: 3_959_194,
        grows: true,
    },
    Table {
        name: "bmsql_new_order",
        columns: &[("no_w_id", NN), ("no_d_id", NN), ("no_o_id", NN)],
        primary_key: &["no_w_id", "no_d_id", "no_o_id"],
        disk_bytes_per_warehouse: 688_128,
        grows: true,
    },
    Table {
        name: "bmsql_item",
        columns: &[
            ("i_id", NN),
            ("i_name", "varchar(24)"),
            ("i_price", "numeric(5,2)"),
            ("i_data", "varchar(50)"),
            ("i_im_id", INT),
        ],
        primary_key: &["i_id"],
        disk_bytes_per_warehouse: 12_943_360,
        grows: false,
    },
    Table {
        name: "bmsql_stock",
        columns: &[
            ("s_w_id", NN),
            ("s_i_id", NN),
            ("s_quantity", INT),
            ("s_ytd", INT),
            ("s_order_cnt", INT),
            ("s_remote_cnt", INT),
            ("s_data", "varchar(50)"),
            ("s_dist_01", INFO),
            ("s_dist_02", INFO),
            ("s_dist_03", INFO),
            ("s_dist_04", INFO),
            ("s_dist_05", INFO),
            ("s_dist_06", INFO),
            ("s_dist_07", INFO),
            ("s_dist_08", INFO),
            ("s_dist_09", INFO),
            ("s_dist_10", INFO),
        ],
        primary_key: &["s_w_id", "s_i_id"],
        disk_bytes_per_warehouse: 37_869_978,
        grows: true,
    },
    Table {
        name: "bmsql_order_line",
        columns: &[
            ("ol_w_id", NN),
            ("ol_d_id", NN),
            ("ol_o_id", NN),
            ("ol_number", NN),
            ("ol_i_id", NN),
            ("ol_delivery_d", "timestamp"),
            ("ol_amount", "numeric(6,2)"),
            ("ol_supply_w_id", INT),
            ("ol_quantity", INT),
            ("ol_dist_info", INFO),
        ],
        primary_key: &["ol_w_id", "ol_d_id", "ol_o_id", "ol_number"],
        disk_bytes_per_warehouse: 39_818_036,
        grows: true,
    },
];

/// The names of the text with a prefix, and `oorder` for `orders`.
pub(super) fn name(table: &'static str) -> &'static str {
    match table {
        "warehouse" => "bmsql_warehouse",
        "district" => "bmsql_district",
        "customer" => "bmsql_customer",
        "history" => "bmsql_history",
        "orders" => "bmsql_oorder",
        "new_order" => "bmsql_new_order",
        "order_line" => "bmsql_order_line",
        "item" => "bmsql_item",
        "stock" => "bmsql_stock",
        other => other,
    }
}

/// The second one has the carrier where the customer was meant: a customer's last order is found
/// by no index, and every delivery changes an indexed column.
pub(super) const SECONDARY: [Secondary; 2] = [
    Secondary {
        name: "bmsql_customer_idx1",
        table: "bmsql_customer",
        unique: false,
        columns: "c_w_id, c_d_id, c_last, c_first",
    },
    Secondary {
        name: "bmsql_oorder_idx1",
        table: "bmsql_oorder",
        unique: true,
        columns: "o_w_id, o_d_id, o_carrier_id, o_id",
    },
];

/// References with their names there, in their order.
pub(super) const FOREIGN_KEYS: [(&str, &str); 10] = [
    (
        "bmsql_district",
        "CONSTRAINT d_warehouse_fkey FOREIGN KEY (d_w_id) REFERENCES bmsql_warehouse (w_id)",
    ),
    (
        "bmsql_customer",
        "CONSTRAINT c_district_fkey FOREIGN KEY (c_w_id, c_d_id) \
         REFERENCES bmsql_district (d_w_id, d_id)",
    ),
    (
        "bmsql_history",
        "CONSTRAINT h_customer_fkey FOREIGN KEY (h_c_w_id, h_c_d_id, h_c_id) \
         REFERENCES bmsql_customer (c_w_id, c_d_id, c_id)",
    ),
    (
        "bmsql_history",
        "CONSTRAINT h_district_fkey FOREIGN KEY (h_w_id, h_d_id) \
         REFERENCES bmsql_district (d_w_id, d_id)",
    ),
    (
        "bmsql_new_order",
        "CONSTRAINT no_order_fkey FOREIGN KEY (no_w_id, no_d_id, no_o_id) \
         REFERENCES bmsql_oorder (o_w_id, o_d_id, o_id)",
    ),
    (
        "bmsql_oorder",
        "CONSTRAINT o_customer_fkey FOREIGN KEY (o_w_id, o_d_id, o_c_id) \
         REFERENCES bmsql_customer (c_w_id, c_d_id, c_id)",
    ),
    (
        "bmsql_order_line",
        "CONSTRAINT ol_order_fkey FOREIGN KEY (ol_w_id, ol_d_id, ol_o_id) \
         REFERENCES bmsql_oorder (o_w_id, o_d_id, o_id)",
    ),
    (
        "bmsql_order_line",
        "CONSTRAINT ol_stock_fkey FOREIGN KEY (ol_supply_w_id, ol_i_id) \
         REFERENCES bmsql_stock (s_w_id, s_i_id)",
    ),
    (
        "bmsql_stock",
        "CONSTRAINT s_warehouse_fkey FOREIGN KEY (s_w_id) REFERENCES bmsql_warehouse (w_id)",
    ),
    ("bmsql_stock", "CONSTRAINT s_item_fkey FOREIGN KEY (s_i_id) REFERENCES bmsql_item (i_id)"),
];

/// Numbers histories on from the last one, and writes the rows of [`CONFIG_TABLE`].
pub(super) fn finish(config: &[(&str, i32)]) -> Vec<String> {
    let values: Vec<String> =
        config.iter().map(|(name, value)| format!("('{name}', '{value}')")).collect();
    let mut finish = vec![
        format!("SELECT setval('{SEQUENCE}', max({HISTORY_ID})) FROM bmsql_history"),
        format!("ALTER TABLE bmsql_history ALTER {HISTORY_ID} SET DEFAULT nextval('{SEQUENCE}')"),
    ];
    if !values.is_empty() {
        finish.push(format!(
            "INSERT INTO {CONFIG_TABLE} VALUES {} \
             ON CONFLICT (cfg_name) DO UPDATE SET cfg_value = excluded.cfg_value",
            values.join(", ")
        ));
    }
    finish
}
