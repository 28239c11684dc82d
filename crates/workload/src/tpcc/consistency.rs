//! The twelve consistency conditions of clause 3.3.2 as SQL. Each query returns the rows that
//! violate it: none on a consistent database, after the load and after any run. One pass over each
//! table, hash joins, no correlated subqueries; order lines are summed up by order before they are
//! joined, because the planner underestimates the groups of a join on three columns and then walks
//! an index. And checks that hold right after the load only.

use super::{
    cardinalities::{CUSTOMERS, DISTRICTS, FIRST_NEW_ORDER, ITEMS, ORDERS},
    names::NAMES,
    rows::{RowSource, Target},
    schema::Schema,
    spec::{LoadConstants, TpccSpec},
};
use crate::description::{Condition, LoadCheck};

/// All of them, for the tables of a schema and what they were loaded with.
#[must_use]
pub fn conditions(schema: Schema, load: LoadConstants) -> Vec<Condition> {
    let delivered = FIRST_NEW_ORDER - 1 - CUSTOMERS * load.c_delivery_cnt;
    let of_schema = |template: &Template| Condition {
        number: template.number,
        title: template.title.to_owned(),
        sql: schema.sql(template.sql).replace("{delivered}", &delivered.to_string()),
    };
    CONDITIONS.iter().map(of_schema).collect()
}

/// A condition with the tables' names to be filled in ([`Schema::sql`]); `{delivered}` is what the
/// delivered orders of a district are right after the load, less what their customers count of
/// them.
struct Template {
    number: u32,
    title: &'static str,
    sql: &'static str,
}

/// Joins to `customer` the sum of the amounts that were delivered to it; conditions 10 and 12.
macro_rules! delivered_to_customer {
    () => {
        "LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, sum(amount) AS ol_amount \
         FROM {orders} JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, sum(ol_amount) AS amount \
         FROM {order_line} WHERE ol_delivery_d IS NOT NULL \
         GROUP BY ol_w_id, ol_d_id, ol_o_id) AS delivered \
         ON (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id) \
         GROUP BY o_w_id, o_d_id, o_c_id) AS l \
         ON (o_w_id, o_d_id, o_c_id) = (c_w_id, c_d_id, c_id) "
    };
}

const CONDITIONS: [Template; 12] = [
    Template {
        number: 1,
        title: "W_YTD is the sum of D_YTD of the warehouse",
        sql: "SELECT w_id, w_ytd, d_ytd \
              FROM {warehouse} FULL JOIN (SELECT d_w_id, sum(d_ytd) AS d_ytd FROM {district} \
              GROUP BY d_w_id) AS d ON d_w_id = w_id \
              WHERE w_ytd IS DISTINCT FROM d_ytd",
    },
    Template {
        number: 2,
        title: "D_NEXT_O_ID - 1 is the largest O_ID and the largest NO_O_ID of the district",
        sql: "SELECT d_w_id, d_id, d_next_o_id, o_id, no_o_id \
              FROM {district} FULL JOIN (SELECT o_w_id, o_d_id, max(o_id) AS o_id FROM {orders} \
              GROUP BY o_w_id, o_d_id) AS o ON (o_w_id, o_d_id) = (d_w_id, d_id) \
              LEFT JOIN (SELECT no_w_id, no_d_id, max(no_o_id) AS no_o_id FROM {new_order} \
              GROUP BY no_w_id, no_d_id) AS n ON (no_w_id, no_d_id) = (d_w_id, d_id) \
              WHERE d_next_o_id - 1 IS DISTINCT FROM o_id OR d_next_o_id - 1 <> no_o_id",
    },
    Template {
        number: 3,
        title: "NO_O_ID of a district are consecutive",
        sql: "SELECT no_w_id, no_d_id, min(no_o_id), max(no_o_id), count(*) FROM {new_order} \
              GROUP BY no_w_id, no_d_id HAVING max(no_o_id) - min(no_o_id) + 1 <> count(*)",
    },
    Template {
        number: 4,
        title: "the sum of O_OL_CNT is the number of order lines of the district",
        sql: "SELECT o_w_id, o_d_id, ol_cnt, lines \
              FROM (SELECT o_w_id, o_d_id, sum(o_ol_cnt) AS ol_cnt FROM {orders} \
              GROUP BY o_w_id, o_d_id) AS o FULL JOIN (SELECT ol_w_id, ol_d_id, \
              count(*) AS lines FROM {order_line} GROUP BY ol_w_id, ol_d_id) AS l \
              ON (ol_w_id, ol_d_id) = (o_w_id, o_d_id) WHERE ol_cnt IS DISTINCT FROM lines",
    },
    Template {
        number: 5,
        title: "O_CARRIER_ID is null exactly for the orders in NEW-ORDER",
        sql: "SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_w_id, no_d_id, no_o_id \
              FROM {orders} FULL JOIN {new_order} \
              ON (no_w_id, no_d_id, no_o_id) = (o_w_id, o_d_id, o_id) \
              WHERE o_id IS NULL OR (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL)",
    },
    Template {
        number: 6,
        title: "O_OL_CNT is the number of order lines of the order",
        sql: "SELECT o_w_id, o_d_id, o_id, o_ol_cnt, ol_w_id, ol_d_id, ol_o_id, lines \
              FROM {orders} FULL JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, count(*) AS lines \
              FROM {order_line} GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l \
              ON (ol_w_id, ol_d_id, ol_o_id) = (o_w_id, o_d_id, o_id) \
              WHERE o_ol_cnt IS DISTINCT FROM lines",
    },
    Template {
        number: 7,
        title: "OL_DELIVERY_D is null exactly for the lines of orders without carrier",
        sql: "SELECT ol_w_id, ol_d_id, ol_o_id, ol_number, ol_delivery_d, o_carrier_id \
              FROM {order_line} JOIN {orders} \
              ON (o_w_id, o_d_id, o_id) = (ol_w_id, ol_d_id, ol_o_id) \
              WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL)",
    },
    Template {
        number: 8,
        title: "W_YTD is the sum of H_AMOUNT of the warehouse",
        sql: "SELECT w_id, w_ytd, h_w_id, h_amount \
              FROM {warehouse} FULL JOIN (SELECT h_w_id, sum(h_amount) AS h_amount FROM {history} \
              GROUP BY h_w_id) AS h ON h_w_id = w_id \
              WHERE w_ytd IS DISTINCT FROM h_amount",
    },
    Template {
        number: 9,
        title: "D_YTD is the sum of H_AMOUNT of the district",
        sql: "SELECT d_w_id, d_id, d_ytd, h_w_id, h_d_id, h_amount \
              FROM {district} FULL JOIN (SELECT h_w_id, h_d_id, sum(h_amount) AS h_amount \
              FROM {history} GROUP BY h_w_id, h_d_id) AS h ON (h_w_id, h_d_id) = (d_w_id, d_id) \
              WHERE d_ytd IS DISTINCT FROM h_amount",
    },
    Template {
        number: 10,
        title: "C_BALANCE is the sum of OL_AMOUNT delivered less the sum of H_AMOUNT",
        sql: concat!(
            "SELECT c_w_id, c_d_id, c_id, c_balance, ol_amount, h_amount FROM {customer} ",
            delivered_to_customer!(),
            "LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, sum(h_amount) AS h_amount \
             FROM {history} GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS h \
             ON (h_c_w_id, h_c_d_id, h_c_id) = (c_w_id, c_d_id, c_id) \
             WHERE c_balance <> coalesce(ol_amount, 0) - coalesce(h_amount, 0)"
        ),
    },
    Template {
        number: 11,
        title: "orders less new orders of a district are 2100 and one for each delivery",
        sql: "SELECT c_w_id, c_d_id, orders, new_orders, deliveries \
              FROM (SELECT c_w_id, c_d_id, sum(c_delivery_cnt) AS deliveries FROM {customer} \
              GROUP BY c_w_id, c_d_id) AS c \
              FULL JOIN (SELECT o_w_id, o_d_id, count(*) AS orders FROM {orders} \
              GROUP BY o_w_id, o_d_id) AS o ON (o_w_id, o_d_id) = (c_w_id, c_d_id) \
              LEFT JOIN (SELECT no_w_id, no_d_id, count(*) AS new_orders FROM {new_order} \
              GROUP BY no_w_id, no_d_id) AS n ON (no_w_id, no_d_id) = (c_w_id, c_d_id) \
              WHERE orders - coalesce(new_orders, 0) IS DISTINCT FROM {delivered} + deliveries",
    },
    Template {
        number: 12,
        title: "C_BALANCE and C_YTD_PAYMENT are the sum of OL_AMOUNT delivered",
        sql: concat!(
            "SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, ol_amount FROM {customer} ",
            delivered_to_customer!(),
            "WHERE c_balance + c_ytd_payment <> coalesce(ol_amount, 0)"
        ),
    },
];

/// Cardinalities and contents of clause 4.3.3.1.
#[must_use]
pub fn load_checks(spec: &TpccSpec, rows: &RowSource) -> Vec<LoadCheck> {
    let warehouses = wide(spec.warehouses_held());
    let schema = spec.schema;
    let mut checks: Vec<LoadCheck> = Target::ALL
        .iter()
        .map(|&target| LoadCheck::rows(schema.name(target.table()), rows.rows(target)))
        .collect();
    let contents = tenths(warehouses).into_iter().chain(of_districts(warehouses)).chain(STARTS);
    checks.extend(contents.map(|(name, sql, expected)| LoadCheck {
        name: name.to_owned(),
        sql: schema.sql(sql),
        expected,
    }));
    checks
}

/// Name, query, and the number expected.
type Content = (&'static str, &'static str, u64);

fn tenths(warehouses: u64) -> [Content; 3] {
    let items = wide(ITEMS);
    let customers = warehouses * wide(DISTRICTS * CUSTOMERS);
    [
        (
            "items with ORIGINAL",
            "SELECT count(*) FROM {item} WHERE i_data LIKE '%ORIGINAL%'",
            items / 10,
        ),
        (
            "stock with ORIGINAL",
            "SELECT count(*) FROM {stock} WHERE s_data LIKE '%ORIGINAL%'",
            warehouses * items / 10,
        ),
        (
            "customers of bad credit",
            "SELECT count(*) FROM {customer} WHERE c_credit = 'BC'",
            customers / 10,
        ),
    ]
}

fn of_districts(warehouses: u64) -> [Content; 3] {
    let districts = warehouses * wide(DISTRICTS);
    [
        (
            "last names of each district among its first thousand customers",
            "SELECT count(DISTINCT (c_w_id, c_d_id, c_last)) FROM {customer} WHERE c_id <= 1000",
            districts * NAMES as u64,
        ),
        (
            "customers of each district that have an order",
            "SELECT count(DISTINCT (o_w_id, o_d_id, o_c_id)) FROM {orders} \
             WHERE o_c_id BETWEEN 1 AND 3000",
            districts * wide(CUSTOMERS),
        ),
        (
            "undelivered orders from 2101 on",
            "SELECT count(*) FROM {orders} WHERE o_carrier_id IS NULL AND o_id >= 2101",
            districts * wide(ORDERS - FIRST_NEW_ORDER + 1),
        ),
    ]
}

const STARTS: [Content; 6] = [
    (
        "customers that do not stand as at the start",
        "SELECT count(*) FROM {customer} WHERE (c_balance, c_ytd_payment, c_payment_cnt, \
         c_delivery_cnt, c_credit_lim, c_middle) <> (-10, 10, 1, 0, 50000, 'OE')",
        0,
    ),
    (
        "delivered order lines with an amount, or others without",
        "SELECT count(*) FROM {order_line} WHERE (ol_o_id < 2101) <> (ol_amount = 0)",
        0,
    ),
    (
        "order lines of another quantity than 5, or remote",
        "SELECT count(*) FROM {order_line} WHERE ol_quantity <> 5 OR ol_supply_w_id <> ol_w_id",
        0,
    ),
    (
        "new orders outside 2101 to 3000",
        "SELECT count(*) FROM {new_order} WHERE no_o_id NOT BETWEEN 2101 AND 3000",
        0,
    ),
    (
        "stock that does not stand as at the start",
        "SELECT count(*) FROM {stock} WHERE (s_ytd, s_order_cnt, s_remote_cnt) <> (0, 0, 0) \
         OR s_quantity NOT BETWEEN 10 AND 100",
        0,
    ),
    (
        "warehouses that do not stand as at the start",
        "SELECT count(*) FROM {warehouse} WHERE w_ytd <> 300000 OR w_tax NOT BETWEEN 0 AND 0.2",
        0,
    ),
];

fn wide(count: i32) -> u64 {
    u64::from(count.unsigned_abs())
}
