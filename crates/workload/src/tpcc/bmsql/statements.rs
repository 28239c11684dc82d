//! The statements of `BenchmarkSQL` 5: same tables, conditions, order of columns and types of
//! parameters as there, so that the server does the same work. Amounts are bound as `float8`, as
//! JDBC's `setDouble` does.

use wire::{Kind, Results, Statement, StatementId};

/// Opens any transaction, in one exchange with its first statement.
pub const BEGIN: StatementId = StatementId(0);
/// Ends a transaction that wrote.
pub const COMMIT: StatementId = StatementId(1);
/// Ends Order-Status, Stock-Level, and a New-Order with an unused item.
pub const ROLLBACK: StatementId = StatementId(2);

/// New-Order: locks the district.
pub const NO_DISTRICT: StatementId = StatementId(3);
/// New-Order: customer and warehouse.
pub const NO_CUSTOMER: StatementId = StatementId(4);
/// New-Order: takes the order number.
pub const NO_TAKE_NUMBER: StatementId = StatementId(5);
/// New-Order: the order.
pub const NO_ORDER: StatementId = StatementId(6);
/// New-Order: its entry among the undelivered.
pub const NO_NEW_ORDER: StatementId = StatementId(7);
/// New-Order: an item.
pub const NO_ITEM: StatementId = StatementId(8);
/// New-Order: locks its stock.
pub const NO_STOCK: StatementId = StatementId(9);
/// New-Order: writes the stock back.
pub const NO_TAKE_STOCK: StatementId = StatementId(10);
/// New-Order: a line.
pub const NO_LINE: StatementId = StatementId(11);

/// Payment: adds to the district.
pub const PAY_DISTRICT: StatementId = StatementId(12);
/// Payment: reads the district.
pub const PAY_DISTRICT_READ: StatementId = StatementId(13);
/// Payment: adds to the warehouse.
pub const PAY_WAREHOUSE: StatementId = StatementId(14);
/// Payment: reads the warehouse.
pub const PAY_WAREHOUSE_READ: StatementId = StatementId(15);
/// Payment and Order-Status: customers of a last name.
pub const NAMES: StatementId = StatementId(16);
/// Payment: locks the customer.
pub const PAY_CUSTOMER_READ: StatementId = StatementId(17);
/// Payment: takes from a customer of good credit.
pub const PAY_CUSTOMER: StatementId = StatementId(18);
/// Payment: reads the data of a customer of bad credit.
pub const PAY_DATA_READ: StatementId = StatementId(19);
/// Payment: takes from a customer of bad credit.
pub const PAY_CUSTOMER_DATA: StatementId = StatementId(20);
/// Payment: its record.
pub const PAY_HISTORY: StatementId = StatementId(21);

/// Order-Status: the customer.
pub const OS_CUSTOMER: StatementId = StatementId(22);
/// Order-Status: the last order.
pub const OS_ORDER: StatementId = StatementId(23);
/// Order-Status: its lines.
pub const OS_LINES: StatementId = StatementId(24);

/// Stock-Level: all of it.
pub const SL_COUNT: StatementId = StatementId(25);

/// Delivery: all undelivered orders of a district, though the first would do.
pub const DEL_NEW_ORDERS: StatementId = StatementId(26);
/// Delivery: takes the oldest.
pub const DEL_TAKE: StatementId = StatementId(27);
/// Delivery: the carrier.
pub const DEL_ORDER: StatementId = StatementId(28);
/// Delivery: the customer's number.
pub const DEL_ORDER_READ: StatementId = StatementId(29);
/// Delivery: the lines.
pub const DEL_LINES: StatementId = StatementId(30);
/// Delivery: the sum of their amounts.
pub const DEL_SUM: StatementId = StatementId(31);
/// Delivery: the customer's balance.
pub const DEL_CUSTOMER: StatementId = StatementId(32);

use Kind::{F64, I32, Text, Timestamp};

const NEW_ORDER: [(&str, &str, &[Kind]); 9] = [
    (
        "no_district",
        "SELECT d_tax, d_next_o_id FROM bmsql_district WHERE d_w_id = $1 AND d_id = $2 FOR UPDATE",
        &[I32; 2],
    ),
    (
        "no_customer",
        "SELECT c_discount, c_last, c_credit, w_tax FROM bmsql_customer \
         JOIN bmsql_warehouse ON w_id = c_w_id WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        &[I32; 3],
    ),
    (
        "no_take_number",
        "UPDATE bmsql_district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2",
        &[I32; 2],
    ),
    (
        "no_order",
        "INSERT INTO bmsql_oorder \
         (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        &[I32, I32, I32, I32, Timestamp, I32, I32],
    ),
    (
        "no_new_order",
        "INSERT INTO bmsql_new_order (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)",
        &[I32; 3],
    ),
    ("no_item", "SELECT i_price, i_name, i_data FROM bmsql_item WHERE i_id = $1", &[I32]),
    (
        "no_stock",
        "SELECT s_quantity, s_data, s_dist_01, s_dist_02, s_dist_03, s_dist_04, s_dist_05, \
         s_dist_06, s_dist_07, s_dist_08, s_dist_09, s_dist_10 FROM bmsql_stock \
         WHERE s_w_id = $1 AND s_i_id = $2 FOR UPDATE",
        &[I32; 2],
    ),
    (
        "no_take_stock",
        "UPDATE bmsql_stock SET s_quantity = $1, s_ytd = s_ytd + $2, \
         s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + $3 \
         WHERE s_w_id = $4 AND s_i_id = $5",
        &[I32; 5],
    ),
    (
        "no_line",
        "INSERT INTO bmsql_order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, \
         ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        &[I32, I32, I32, I32, I32, I32, I32, F64, Text],
    ),
];

const PAYMENT: [(&str, &str, &[Kind]); 10] = [
    (
        "pay_district",
        "UPDATE bmsql_district SET d_ytd = d_ytd + $1 WHERE d_w_id = $2 AND d_id = $3",
        &[F64, I32, I32],
    ),
    (
        "pay_district_read",
        "SELECT d_name, d_street_1, d_street_2, d_city, d_state, d_zip FROM bmsql_district \
         WHERE d_w_id = $1 AND d_id = $2",
        &[I32; 2],
    ),
    ("pay_warehouse", "UPDATE bmsql_warehouse SET w_ytd = w_ytd + $1 WHERE w_id = $2", &[F64, I32]),
    (
        "pay_warehouse_read",
        "SELECT w_name, w_street_1, w_street_2, w_city, w_state, w_zip FROM bmsql_warehouse \
         WHERE w_id = $1",
        &[I32],
    ),
    (
        "names",
        "SELECT c_id FROM bmsql_customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 \
         ORDER BY c_first",
        &[I32, I32, Text],
    ),
    (
        "pay_customer_read",
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, \
         c_phone, c_since, c_credit, c_credit_lim, c_discount, c_balance FROM bmsql_customer \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 FOR UPDATE",
        &[I32; 3],
    ),
    (
        "pay_customer",
        "UPDATE bmsql_customer SET c_balance = c_balance - $1, \
         c_ytd_payment = c_ytd_payment + $2, c_payment_cnt = c_payment_cnt + 1 \
         WHERE c_w_id = $3 AND c_d_id = $4 AND c_id = $5",
        &[F64, F64, I32, I32, I32],
    ),
    (
        "pay_data_read",
        "SELECT c_data FROM bmsql_customer WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        &[I32; 3],
    ),
    (
        "pay_customer_data",
        "UPDATE bmsql_customer SET c_balance = c_balance - $1, \
         c_ytd_payment = c_ytd_payment + $2, c_payment_cnt = c_payment_cnt + 1, c_data = $3 \
         WHERE c_w_id = $4 AND c_d_id = $5 AND c_id = $6",
        &[F64, F64, Text, I32, I32, I32],
    ),
    (
        "pay_history",
        "INSERT INTO bmsql_history \
         (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        &[I32, I32, I32, I32, I32, Timestamp, F64, Text],
    ),
];

const READERS: [(&str, &str, &[Kind]); 4] = [
    (
        "os_customer",
        "SELECT c_first, c_middle, c_last, c_balance FROM bmsql_customer \
         WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3",
        &[I32; 3],
    ),
    (
        "os_order",
        "SELECT o_id, o_entry_d, o_carrier_id FROM bmsql_oorder \
         WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 AND o_id = \
         (SELECT max(o_id) FROM bmsql_oorder WHERE o_w_id = $4 AND o_d_id = $5 AND o_c_id = $6)",
        &[I32; 6],
    ),
    (
        "os_lines",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d \
         FROM bmsql_order_line WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 \
         ORDER BY ol_w_id, ol_d_id, ol_o_id, ol_number",
        &[I32; 3],
    ),
    (
        "sl_count",
        "SELECT count(*) FROM (SELECT s_w_id, s_i_id, s_quantity FROM bmsql_stock \
         WHERE s_w_id = $1 AND s_quantity < $2 AND s_i_id IN (SELECT ol_i_id \
         FROM bmsql_district JOIN bmsql_order_line ON ol_w_id = d_w_id AND ol_d_id = d_id \
         AND ol_o_id >= d_next_o_id - 20 AND ol_o_id < d_next_o_id \
         WHERE d_w_id = $3 AND d_id = $4)) AS low",
        &[I32; 4],
    ),
];

const DELIVERY: [(&str, &str, &[Kind]); 7] = [
    (
        "del_new_orders",
        "SELECT no_o_id FROM bmsql_new_order WHERE no_w_id = $1 AND no_d_id = $2 \
         ORDER BY no_o_id ASC",
        &[I32; 2],
    ),
    (
        "del_take",
        "DELETE FROM bmsql_new_order WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = $3",
        &[I32; 3],
    ),
    (
        "del_order",
        "UPDATE bmsql_oorder SET o_carrier_id = $1 WHERE o_w_id = $2 AND o_d_id = $3 AND o_id = $4",
        &[I32; 4],
    ),
    (
        "del_order_read",
        "SELECT o_c_id FROM bmsql_oorder WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3",
        &[I32; 3],
    ),
    (
        "del_lines",
        "UPDATE bmsql_order_line SET ol_delivery_d = $1 \
         WHERE ol_w_id = $2 AND ol_d_id = $3 AND ol_o_id = $4",
        &[Timestamp, I32, I32, I32],
    ),
    (
        "del_sum",
        "SELECT sum(ol_amount) FROM bmsql_order_line \
         WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3",
        &[I32; 3],
    ),
    (
        "del_customer",
        "UPDATE bmsql_customer SET c_balance = c_balance + $1, \
         c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = $2 AND c_d_id = $3 AND c_id = $4",
        &[F64, I32, I32, I32],
    ),
];

/// All statements, each at the position of its constant.
#[must_use]
pub fn all() -> Vec<Statement> {
    let ends: [(&str, &str, &[Kind]); 3] = [
        ("begin", "BEGIN ISOLATION LEVEL READ COMMITTED", &[]),
        ("commit", "COMMIT", &[]),
        ("rollback", "ROLLBACK", &[]),
    ];
    let statement = |(name, sql, params): &(&str, &str, &[Kind])| Statement {
        name: (*name).to_owned(),
        sql: (*sql).to_owned(),
        params: params.to_vec(),
        results: Results::Binary,
    };
    let work = NEW_ORDER.iter().chain(&PAYMENT).chain(&READERS).chain(&DELIVERY);
    ends.iter().chain(work).map(statement).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_stands_at_its_position() {
        let statements = all();
        for (id, name) in [
            (BEGIN, "begin"),
            (COMMIT, "commit"),
            (ROLLBACK, "rollback"),
            (NO_DISTRICT, "no_district"),
            (NO_CUSTOMER, "no_customer"),
            (NO_TAKE_NUMBER, "no_take_number"),
            (NO_ORDER, "no_order"),
            (NO_NEW_ORDER, "no_new_order"),
            (NO_ITEM, "no_item"),
            (NO_STOCK, "no_stock"),
            (NO_TAKE_STOCK, "no_take_stock"),
            (NO_LINE, "no_line"),
            (PAY_DISTRICT, "pay_district"),
            (PAY_DISTRICT_READ, "pay_district_read"),
            (PAY_WAREHOUSE, "pay_warehouse"),
            (PAY_WAREHOUSE_READ, "pay_warehouse_read"),
            (NAMES, "names"),
            (PAY_CUSTOMER_READ, "pay_customer_read"),
            (PAY_CUSTOMER, "pay_customer"),
            (PAY_DATA_READ, "pay_data_read"),
            (PAY_CUSTOMER_DATA, "pay_customer_data"),
            (PAY_HISTORY, "pay_history"),
            (OS_CUSTOMER, "os_customer"),
            (OS_ORDER, "os_order"),
            (OS_LINES, "os_lines"),
            (SL_COUNT, "sl_count"),
            (DEL_NEW_ORDERS, "del_new_orders"),
            (DEL_TAKE, "del_take"),
            (DEL_ORDER, "del_order"),
            (DEL_ORDER_READ, "del_order_read"),
            (DEL_LINES, "del_lines"),
            (DEL_SUM, "del_sum"),
            (DEL_CUSTOMER, "del_customer"),
        ] {
            assert_eq!(statements[usize::from(id.0)].name, name);
        }
        assert_eq!(statements.len(), 33);
    }
}
