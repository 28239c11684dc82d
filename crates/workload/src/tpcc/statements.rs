//! The SQL of the five transactions for the faces `statement` and `pipeline`. A session prepares
//! all of it once; the constants are positions in that list. Only one statement differs between the
//! two: [`PAY_HISTORY`].

use wire::{Kind, Statement, StatementId};

use super::{
    cardinalities::DISTRICTS,
    prepared::statement,
    procedures,
    spec::{Face, Isolation, TpccSpec},
};

/// Opens a transaction that writes, and Stock-Level.
pub const BEGIN: StatementId = StatementId(0);
/// Opens Order-Status: one snapshot for its three queries (clause 3.4.1).
pub const BEGIN_SNAPSHOT: StatementId = StatementId(1);
/// Ends a transaction.
pub const COMMIT: StatementId = StatementId(2);
/// Ends a New-Order with an unused item.
pub const ROLLBACK: StatementId = StatementId(3);

/// New-Order: the warehouse's tax.
pub const NO_WAREHOUSE: StatementId = StatementId(4);
/// New-Order: takes the next order number.
pub const NO_DISTRICT: StatementId = StatementId(5);
/// New-Order: the customer.
pub const NO_CUSTOMER: StatementId = StatementId(6);
/// New-Order: all items at once; an unused one has no row.
pub const NO_ITEMS: StatementId = StatementId(7);
/// New-Order: the order.
pub const NO_ORDER: StatementId = StatementId(8);
/// New-Order: its entry among the undelivered.
pub const NO_NEW_ORDER: StatementId = StatementId(9);
/// New-Order: all lines at once.
pub const NO_LINES: StatementId = StatementId(10);

/// Payment: the warehouse.
pub const PAY_WAREHOUSE: StatementId = StatementId(11);
/// Payment: the district.
pub const PAY_DISTRICT: StatementId = StatementId(12);
/// Payment: customers of a last name.
pub const PAY_NAMES: StatementId = StatementId(13);
/// Payment: the customer.
pub const PAY_CUSTOMER: StatementId = StatementId(14);
/// Payment: its record. In face `statement` the client sends `H_DATA`, put together from the
/// answers before; in face `pipeline` nobody has seen them yet, and the statement looks the two
/// names up.
pub const PAY_HISTORY: StatementId = StatementId(15);

/// Order-Status: a customer by number.
pub const OS_CUSTOMER: StatementId = StatementId(16);
/// Order-Status: customers of a last name.
pub const OS_NAMES: StatementId = StatementId(17);
/// Order-Status: the last order.
pub const OS_ORDER: StatementId = StatementId(18);
/// Order-Status: its lines.
pub const OS_LINES: StatementId = StatementId(19);

/// Delivery: takes the oldest undelivered order of a district.
pub const DEL_NEW_ORDER: StatementId = StatementId(20);
/// Delivery: the carrier.
pub const DEL_ORDER: StatementId = StatementId(21);
/// Delivery: the lines, and the sum of their amounts.
pub const DEL_LINES: StatementId = StatementId(22);
/// Delivery: the customer's balance.
pub const DEL_CUSTOMER: StatementId = StatementId(23);

/// Stock-Level: the next order number.
pub const SL_DISTRICT: StatementId = StatementId(24);
/// Stock-Level: how many items are low.
pub const SL_COUNT: StatementId = StatementId(25);

/// New-Order: takes an item from the stock, for each district (1 to 10) its own.
#[must_use]
pub fn no_stock(district: i32) -> StatementId {
    StatementId(25 + u16::try_from(district).unwrap_or(u16::MAX))
}

const NO_DISTRICT_SQL: &str = "\
UPDATE {district} SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = $1 AND d_id = $2 \
RETURNING d_next_o_id - 1, d_tax";

const NO_CUSTOMER_SQL: &str = "\
SELECT c_discount, c_last, c_credit FROM {customer} \
WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

const NO_ORDER_SQL: &str = "\
INSERT INTO {orders} (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) \
VALUES ($1, $2, $3, $4, $5, $6, $7)";

const NO_LINES_SQL: &str = "\
INSERT INTO {order_line} (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, \
ol_quantity, ol_amount, ol_dist_info) \
SELECT $1, $2, $3, line.* FROM unnest($4, $5, $6, $7, $8, $9) AS line";

const PAY_WAREHOUSE_SQL: &str = "\
UPDATE {warehouse} SET w_ytd = w_ytd + $2 WHERE w_id = $1 \
RETURNING w_name, w_street_1, w_street_2, w_city, w_state, w_zip";

const PAY_DISTRICT_SQL: &str = "\
UPDATE {district} SET d_ytd = d_ytd + $3 WHERE d_w_id = $1 AND d_id = $2 \
RETURNING d_name, d_street_1, d_street_2, d_city, d_state, d_zip";

const PAY_NAMES_SQL: &str = "\
SELECT c_id FROM {customer} WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";

/// The new value of every column is computed from the locked row, so no update is lost; `C_DATA` of
/// bad credit is pushed right by the payment's data and cut at 500 characters.
const PAY_CUSTOMER_SQL: &str = "\
UPDATE {customer} SET c_balance = c_balance - $4, c_ytd_payment = c_ytd_payment + $4, \
c_payment_cnt = c_payment_cnt + 1, c_data = CASE c_credit WHEN 'BC' THEN \
left(concat_ws(' ', c_id, c_d_id, c_w_id, $5, $6, $4, c_data), 500) ELSE c_data END \
WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3 \
RETURNING c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, \
c_since, c_credit, c_credit_lim, c_discount, c_balance, \
CASE c_credit WHEN 'BC' THEN left(c_data, 200) END";

const PAY_HISTORY_SQL: &str = "\
INSERT INTO {history} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

/// A warehouse or district that is missing makes `H_DATA` NULL, which schema `spec` refuses.
const PAY_HISTORY_NAMED_SQL: &str = "\
INSERT INTO {history} (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) \
VALUES ($1, $2, $3, $4, $5, $6, $7, (SELECT w_name FROM {warehouse} WHERE w_id = $5) || '    ' || \
(SELECT d_name FROM {district} WHERE d_w_id = $5 AND d_id = $4))";

const OS_CUSTOMER_SQL: &str = "\
SELECT c_id, c_balance, c_first, c_middle, c_last FROM {customer} \
WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

const OS_NAMES_SQL: &str = "\
SELECT c_id, c_balance, c_first, c_middle, c_last FROM {customer} \
WHERE c_w_id = $1 AND c_d_id = $2 AND c_last = $3 ORDER BY c_first";

const OS_ORDER_SQL: &str = "\
SELECT o_id, o_entry_d, o_carrier_id FROM {orders} \
WHERE o_w_id = $1 AND o_d_id = $2 AND o_c_id = $3 ORDER BY o_id DESC LIMIT 1";

const OS_LINES_SQL: &str = "\
SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM {order_line} \
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3";

/// A concurrent Delivery of the same district waits for the row and then finds it gone; FOR UPDATE
/// below LIMIT makes it go on to the next one.
const DEL_NEW_ORDER_SQL: &str = "\
DELETE FROM {new_order} WHERE no_w_id = $1 AND no_d_id = $2 AND no_o_id = \
(SELECT no_o_id FROM {new_order} WHERE no_w_id = $1 AND no_d_id = $2 \
ORDER BY no_o_id LIMIT 1 FOR UPDATE) RETURNING no_o_id";

const DEL_ORDER_SQL: &str = "\
UPDATE {orders} SET o_carrier_id = $4 WHERE o_w_id = $1 AND o_d_id = $2 AND o_id = $3 \
RETURNING o_c_id";

const DEL_LINES_SQL: &str = "\
WITH delivered AS (UPDATE {order_line} SET ol_delivery_d = $4 \
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id = $3 RETURNING ol_amount) \
SELECT sum(ol_amount) FROM delivered";

const DEL_CUSTOMER_SQL: &str = "\
UPDATE {customer} SET c_balance = c_balance + $4, c_delivery_cnt = c_delivery_cnt + 1 \
WHERE c_w_id = $1 AND c_d_id = $2 AND c_id = $3";

const SL_COUNT_SQL: &str = "\
SELECT count(*) FROM (SELECT DISTINCT ol_i_id FROM {order_line} \
WHERE ol_w_id = $1 AND ol_d_id = $2 AND ol_o_id >= $3 - 20 AND ol_o_id < $3) AS recent \
JOIN {stock} ON s_w_id = $1 AND s_i_id = ol_i_id WHERE s_quantity < $4";

/// What a session prepares for a face: for `statement` and `pipeline` each statement at the
/// position of its constant.
#[must_use]
pub fn all(spec: &TpccSpec) -> Vec<Statement> {
    let mut statements = match spec.face {
        Face::Statement => one_by_one(spec.isolation),
        Face::Pipeline => {
            let mut statements = one_by_one(spec.isolation);
            statements[usize::from(PAY_HISTORY.0)] = statement(
                "pay_history_named",
                PAY_HISTORY_NAMED_SQL,
                &[I32, I32, I32, I32, I32, Timestamp, Decimal],
            );
            statements
        }
        Face::Procedure => procedures::calls(),
    };
    for statement in &mut statements {
        statement.sql = spec.schema.sql(&statement.sql);
    }
    statements
}

fn one_by_one(isolation: Isolation) -> Vec<Statement> {
    let snapshot = match isolation {
        Isolation::Serializable => Isolation::Serializable,
        Isolation::ReadCommitted | Isolation::RepeatableRead => Isolation::RepeatableRead,
    };
    let begin = format!("BEGIN ISOLATION LEVEL {}", isolation.sql());
    let begin_snapshot = format!("BEGIN ISOLATION LEVEL {} READ ONLY", snapshot.sql());
    let mut statements = vec![
        statement("begin", &begin, &[]),
        statement("begin_snapshot", &begin_snapshot, &[]),
        statement("commit", "COMMIT", &[]),
        statement("rollback", "ROLLBACK", &[]),
    ];
    statements.extend(new_order());
    statements.extend(payment());
    statements.extend(the_others());
    statements.extend((1..=DISTRICTS).map(stock));
    statements
}

use Kind::{Decimal, Decimals, I32, I32s, Text, Texts, Timestamp};

fn new_order() -> [Statement; 7] {
    [
        statement("no_warehouse", "SELECT w_tax FROM {warehouse} WHERE w_id = $1", &[I32]),
        statement("no_district", NO_DISTRICT_SQL, &[I32; 2]),
        statement("no_customer", NO_CUSTOMER_SQL, &[I32; 3]),
        statement(
            "no_items",
            "SELECT i_id, i_price, i_name, i_data FROM {item} WHERE i_id = ANY ($1)",
            &[I32s],
        ),
        statement("no_order", NO_ORDER_SQL, &[I32, I32, I32, I32, Timestamp, I32, I32]),
        statement(
            "no_new_order",
            "INSERT INTO {new_order} (no_o_id, no_d_id, no_w_id) VALUES ($1, $2, $3)",
            &[I32; 3],
        ),
        statement(
            "no_lines",
            NO_LINES_SQL,
            &[I32, I32, I32, I32s, I32s, I32s, I32s, Decimals, Texts],
        ),
    ]
}

/// The quantity falls by what is ordered, and rises by 91 where it would fall below 10 (clause
/// 2.4.2.2); `$3` is the quantity ordered, `$4` 1 for a remote order.
fn stock(district: i32) -> Statement {
    let sql = format!(
        "UPDATE {{stock}} SET s_quantity = CASE WHEN s_quantity >= $3 + 10 THEN s_quantity - $3 \
         ELSE s_quantity - $3 + 91 END, s_ytd = s_ytd + $3, s_order_cnt = s_order_cnt + 1, \
         s_remote_cnt = s_remote_cnt + $4 WHERE s_w_id = $1 AND s_i_id = $2 \
         RETURNING s_quantity, s_dist_{district:02}, s_data"
    );
    statement(&format!("no_stock_{district:02}"), &sql, &[I32; 4])
}

fn payment() -> [Statement; 5] {
    [
        statement("pay_warehouse", PAY_WAREHOUSE_SQL, &[I32, Decimal]),
        statement("pay_district", PAY_DISTRICT_SQL, &[I32, I32, Decimal]),
        statement("pay_names", PAY_NAMES_SQL, &[I32, I32, Text]),
        statement("pay_customer", PAY_CUSTOMER_SQL, &[I32, I32, I32, Decimal, I32, I32]),
        statement(
            "pay_history",
            PAY_HISTORY_SQL,
            &[I32, I32, I32, I32, I32, Timestamp, Decimal, Text],
        ),
    ]
}

fn the_others() -> [Statement; 10] {
    [
        statement("os_customer", OS_CUSTOMER_SQL, &[I32; 3]),
        statement("os_names", OS_NAMES_SQL, &[I32, I32, Text]),
        statement("os_order", OS_ORDER_SQL, &[I32; 3]),
        statement("os_lines", OS_LINES_SQL, &[I32; 3]),
        statement("del_new_order", DEL_NEW_ORDER_SQL, &[I32; 2]),
        statement("del_order", DEL_ORDER_SQL, &[I32; 4]),
        statement("del_lines", DEL_LINES_SQL, &[I32, I32, I32, Timestamp]),
        statement("del_customer", DEL_CUSTOMER_SQL, &[I32, I32, I32, Decimal]),
        statement(
            "sl_district",
            "SELECT d_next_o_id FROM {district} WHERE d_w_id = $1 AND d_id = $2",
            &[I32; 2],
        ),
        statement("sl_count", SL_COUNT_SQL, &[I32; 4]),
    ]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(face: &str, schema: &str, isolation: &str) -> TpccSpec {
        let spec = json!({"kind": "tpcc", "face": face, "schema": schema, "isolation": isolation});
        TpccSpec::from_json(&spec).expect("a specification")
    }

    #[test]
    fn every_statement_stands_at_its_position() {
        let statements = all(&spec("statement", "spec", "read committed"));
        for (id, name) in [
            (BEGIN, "begin"),
            (BEGIN_SNAPSHOT, "begin_snapshot"),
            (COMMIT, "commit"),
            (ROLLBACK, "rollback"),
            (NO_WAREHOUSE, "no_warehouse"),
            (NO_DISTRICT, "no_district"),
            (NO_CUSTOMER, "no_customer"),
            (NO_ITEMS, "no_items"),
            (NO_ORDER, "no_order"),
            (NO_NEW_ORDER, "no_new_order"),
            (NO_LINES, "no_lines"),
            (PAY_WAREHOUSE, "pay_warehouse"),
            (PAY_DISTRICT, "pay_district"),
            (PAY_NAMES, "pay_names"),
            (PAY_CUSTOMER, "pay_customer"),
            (PAY_HISTORY, "pay_history"),
            (OS_CUSTOMER, "os_customer"),
            (OS_NAMES, "os_names"),
            (OS_ORDER, "os_order"),
            (OS_LINES, "os_lines"),
            (DEL_NEW_ORDER, "del_new_order"),
            (DEL_ORDER, "del_order"),
            (DEL_LINES, "del_lines"),
            (DEL_CUSTOMER, "del_customer"),
            (SL_DISTRICT, "sl_district"),
            (SL_COUNT, "sl_count"),
            (no_stock(1), "no_stock_01"),
            (no_stock(10), "no_stock_10"),
        ] {
            assert_eq!(statements[usize::from(id.0)].name, name);
        }
        assert_eq!(statements.len(), 36);
    }

    #[test]
    fn the_isolation_is_said_in_every_begin() {
        for (isolation, begin, snapshot) in [
            (
                "read committed",
                "BEGIN ISOLATION LEVEL READ COMMITTED",
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            ),
            (
                "serializable",
                "BEGIN ISOLATION LEVEL SERIALIZABLE",
                "BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY",
            ),
        ] {
            let statements = all(&spec("pipeline", "spec", isolation));
            assert_eq!(statements[0].sql, begin);
            assert_eq!(statements[1].sql, snapshot);
        }
    }
    #[test]
    fn a_pipeline_sends_the_same_statements_but_one() {
        let [statement, pipeline] =
            ["statement", "pipeline"].map(|face| all(&spec(face, "spec", "read committed")));
        let other: Vec<(&str, &str)> = statement
            .iter()
            .zip(&pipeline)
            .filter(|(one, other)| one != other)
            .map(|(one, other)| (one.name.as_str(), other.name.as_str()))
            .collect();
        assert_eq!(other, [("pay_history", "pay_history_named")]);
        assert_eq!(statement.len(), pipeline.len());
    }

    #[test]
    fn every_table_has_its_schemas_name() {
        for face in ["statement", "pipeline", "procedure"] {
            let ours = all(&spec(face, "spec", "read committed"));
            let theirs = all(&spec(face, "bmsql", "read committed"));
            assert!(ours.iter().chain(&theirs).all(|s| !s.sql.contains('{')));
            for (ours, theirs) in ours.iter().zip(&theirs) {
                let named = theirs.sql.contains("bmsql_");
                let needs = ["FROM", "UPDATE", "INTO", "JOIN"].iter().any(|word| {
                    ours.sql.contains(&format!("{word} ")) && !ours.sql.contains("pgdyno_")
                });
                assert_eq!(named, needs, "{}", theirs.sql);
            }
        }
    }
}
