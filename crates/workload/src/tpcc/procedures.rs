//! Face `procedure`: our own functions in the database, one for each transaction, and the calls of
//! them. Their source stands in `procedures/*.sql`, with the tables' names to be filled in.
//!
//! New-Order is a procedure because only a procedure can end a transaction itself: the order with
//! an unused item is rolled back by it. The others are functions, those that only read STABLE, so
//! that all their queries see one snapshot.

use wire::{Kind, Statement, StatementId};

use crate::made::functions;

use super::{
    prepared::statement,
    spec::{Isolation, Schema, TpccSpec},
};

/// The call of New-Order.
pub const NEW_ORDER: StatementId = StatementId(0);
/// The call of Payment.
pub const PAYMENT: StatementId = StatementId(1);
/// The call of Order-Status.
pub const ORDER_STATUS: StatementId = StatementId(2);
/// The call of Delivery.
pub const DELIVERY: StatementId = StatementId(3);
/// The call of Stock-Level.
pub const STOCK_LEVEL: StatementId = StatementId(4);

/// Name and source by transaction.
const SOURCES: [(&str, &str); 5] = [
    ("pgdyno_new_order", include_str!("procedures/new_order.sql")),
    ("pgdyno_payment", include_str!("procedures/payment.sql")),
    ("pgdyno_order_status", include_str!("procedures/order_status.sql")),
    ("pgdyno_delivery", include_str!("procedures/delivery.sql")),
    ("pgdyno_stock_level", include_str!("procedures/stock_level.sql")),
];

/// The columns that New-Order returns are arguments as well, as PostgreSQL 12 and 13 want it.
const NEW_ORDER_SQL: &str = "\
CALL pgdyno_new_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
NULL::integer, NULL::numeric, NULL::numeric, NULL::numeric, NULL::text, NULL::text, \
NULL::integer[], NULL::text[], NULL::numeric[], NULL::integer[], NULL::integer[])";

/// The calls, each at the position of its constant.
pub(super) fn calls() -> Vec<Statement> {
    use Kind::{Decimal, I32, I32s, Text, Timestamp};
    vec![
        statement(
            "new_order",
            NEW_ORDER_SQL,
            &[I32, I32, I32, Timestamp, I32, I32s, I32s, I32s, I32s, I32s, I32],
        ),
        statement(
            "payment",
            "SELECT * FROM pgdyno_payment($1, $2, $3, $4, $5, $6, $7, $8)",
            &[I32, I32, I32, I32, I32, Text, Decimal, Timestamp],
        ),
        statement(
            "order_status",
            "SELECT * FROM pgdyno_order_status($1, $2, $3, $4)",
            &[I32, I32, I32, Text],
        ),
        statement("delivery", "SELECT * FROM pgdyno_delivery($1, $2, $3)", &[I32, I32, Timestamp]),
        statement("stock_level", "SELECT * FROM pgdyno_stock_level($1, $2, $3)", &[I32; 3]),
    ]
}

/// Names and sources for a schema.
pub(super) fn sources(schema: Schema) -> impl Iterator<Item = (&'static str, String)> {
    SOURCES.iter().map(move |(name, source)| (*name, schema.sql(source)))
}

/// Refuses a server on which the calls would have another isolation than the plan says, then
/// creates the functions, unless somebody else's are in the way.
pub(super) fn setup(spec: &TpccSpec) -> Vec<String> {
    let level = spec.isolation.sql().to_lowercase();
    let check = format!(
        "DO $$ BEGIN IF current_setting('default_transaction_isolation') <> '{level}' THEN \
         RAISE EXCEPTION 'default_transaction_isolation is %, the workload says {level}', \
         current_setting('default_transaction_isolation') USING HINT = \
         'A call is a transaction of its own and takes the session''s isolation: change the \
         setting of server, database, role or pooler.'; END IF; END $$"
    );
    let (names, sources) = sources(spec.schema).map(|(name, sql)| (name.to_owned(), sql)).unzip();
    let names: Vec<String> = names;
    std::iter::once(check).chain(functions::creation(&names, sources)).collect()
}

/// What sessions must be told. At the level that servers have by default they are told nothing, so
/// that a pooler that refuses settings can be used.
pub(super) fn settings(isolation: Isolation) -> Vec<(String, String)> {
    match isolation {
        Isolation::ReadCommitted => Vec::new(),
        Isolation::RepeatableRead | Isolation::Serializable => {
            vec![("default_transaction_isolation".to_owned(), isolation.sql().to_lowercase())]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_stands_at_its_position_and_names_its_function() {
        let calls = calls();
        for (id, call, (function, source)) in [
            (NEW_ORDER, "new_order", SOURCES[0]),
            (PAYMENT, "payment", SOURCES[1]),
            (ORDER_STATUS, "order_status", SOURCES[2]),
            (DELIVERY, "delivery", SOURCES[3]),
            (STOCK_LEVEL, "stock_level", SOURCES[4]),
        ] {
            let statement = &calls[usize::from(id.0)];
            assert_eq!(statement.name, call);
            assert_eq!(function, format!("pgdyno_{call}"));
            assert!(statement.sql.contains(&format!("{function}($1")), "{}", statement.sql);
            assert!(source.contains(&format!(" {function}(")), "{function}");
        }
    }

    #[test]
    fn tables_are_named_in_braces_and_only_there() {
        for (name, source) in sources(Schema::Bmsql) {
            let tables = ["FROM", "UPDATE", "INTO", "JOIN"].map(|word| format!("{word} bmsql_"));
            assert!(tables.iter().any(|table| source.contains(table)), "{name}");
            assert!(!source.replace("'{}'", "").contains('{'), "{name}");
            // Nothing but functions of ours is ever replaced, and nothing dropped.
            assert!(!source.contains("DROP") && source.contains("CREATE OR REPLACE"));
        }
    }
}
