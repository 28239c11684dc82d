//! Schema `spec`: the nine tables of clause 1.3 with the names of the text, two secondary indexes
//! and the foreign keys of clause 1.4.

use super::table::{NN, Secondary, Table};

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
        grows: true,
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
        grows: true,
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
        grows: true,
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
        grows: true,
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
        grows: true,
    },
    Table {
        name: "new_order",
        columns: &[("no_o_id", NN), ("no_d_id", NN), ("no_w_id", NN)],
        primary_key: &["no_w_id", "no_d_id", "no_o_id"],
        disk_bytes_per_warehouse: 688_128,
        grows: true,
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
        grows: false,
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
        grows: true,
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
        grows: true,
    },
];

/// Finding customers by last name, in the order in which the text counts them; and finding a
/// customer's last order.
pub(super) const SECONDARY: [Secondary; 2] = [
    Secondary {
        name: "customer_by_name",
        table: "customer",
        unique: false,
        columns: "c_w_id, c_d_id, c_last, c_first",
    },
    Secondary {
        name: "orders_by_customer",
        table: "orders",
        unique: false,
        columns: "o_w_id, o_d_id, o_c_id, o_id",
    },
];

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
