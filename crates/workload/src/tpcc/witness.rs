//! What the transactions that change something leave behind: an order, a line of history, delivered
//! order lines. Each carries the time that the client gave it, and is found by it.

use wire::Timestamp;

use super::{cardinalities::DISTRICTS, input::Request, kinds::KINDS, schema::Schema};
use crate::witness::{Witness, WitnessQuery};

/// What a request leaves; `None`: it only reads.
pub(super) fn of(request: &Request, now: Timestamp) -> Option<Witness> {
    let at_us = now.unix_micros();
    match request {
        Request::NewOrder(order) => {
            let [warehouse, district, customer] =
                [order.warehouse, order.district, order.customer].map(i64::from);
            Some(Witness::row([warehouse, district, customer, at_us]))
        }
        Request::Payment(payment) => {
            let [warehouse, district, amount] =
                [payment.warehouse, payment.district, payment.amount_cents].map(i64::from);
            Some(Witness::row([warehouse, district, amount, at_us]))
        }
        Request::Delivery(delivery) => {
            let rows = u8::try_from(DISTRICTS).unwrap_or(u8::MAX); // ten
            Some(Witness { key: [delivery.warehouse.into(), at_us, 0, 0], rows })
        }
        Request::OrderStatus(_) | Request::StockLevel(_) => None,
    }
}

/// Microseconds since 1970, of a column.
macro_rules! micros {
    ($column:literal) => {
        concat!("round(extract(epoch FROM ", $column, ") * 1000000)::bigint")
    };
}

/// A row's time is not before `$1`.
macro_rules! since {
    ($column:literal) => {
        concat!($column, " >= timestamp '1970-01-01' + $1::bigint * interval '1 microsecond'")
    };
}

/// By kind, in the order of [`KINDS`].
const QUERIES: [Option<&str>; 5] = [
    Some(concat!(
        "SELECT o_w_id::bigint, o_d_id::bigint, o_c_id::bigint, ",
        micros!("o_entry_d"),
        " FROM {orders} WHERE ",
        since!("o_entry_d")
    )),
    Some(concat!(
        "SELECT h_w_id::bigint, h_d_id::bigint, (h_amount * 100)::bigint, ",
        micros!("h_date"),
        " FROM {history} WHERE ",
        since!("h_date")
    )),
    None,
    Some(concat!(
        "SELECT w::bigint, ",
        micros!("at"),
        ", 0::bigint, 0::bigint FROM (SELECT DISTINCT ol_w_id AS w, ol_d_id AS d, \
         ol_delivery_d AS at FROM {order_line} WHERE ",
        since!("ol_delivery_d"),
        ") AS delivered"
    )),
    None,
];

/// How they are found in a schema's tables.
pub(super) fn queries(schema: Schema) -> Vec<WitnessQuery> {
    let query = |(kind, sql): (&&str, Option<&str>)| {
        Some(WitnessQuery { kind: (*kind).to_owned(), sql: schema.sql(sql?) })
    };
    KINDS.iter().zip(QUERIES).filter_map(query).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tpcc::input::{Customer, Delivery, NewOrder, Payment, StockLevel};

    #[test]
    fn what_changes_something_has_a_query_and_leaves_what_it_finds() {
        let now = Timestamp::from_unix_micros(1_700_000_000_123_456);
        let order = Request::NewOrder(NewOrder::new(3, 7, 11, &[]));
        let payment = Request::Payment(Payment {
            warehouse: 3,
            district: 7,
            customer_warehouse: 4,
            customer_district: 8,
            customer: Customer::Id(1),
            amount_cents: 4_205,
        });
        let delivery = Request::Delivery(Delivery { warehouse: 3, carrier: 5 });
        let look = Request::StockLevel(StockLevel { warehouse: 3, district: 7, threshold: 12 });

        let keys = [&order, &payment, &delivery].map(|one| of(one, now).map(|left| left.key));
        let at = now.unix_micros();
        assert_eq!(keys, [Some([3, 7, 11, at]), Some([3, 7, 4_205, at]), Some([3, at, 0, 0])]);
        assert_eq!(of(&look, now), None);
        let kinds: Vec<String> = queries(Schema::Spec).into_iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [KINDS[0], KINDS[1], KINDS[3]]);
    }

    #[test]
    fn names_of_tables_are_the_schema_s() {
        for query in queries(Schema::Bmsql) {
            assert!(query.sql.contains("FROM bmsql_") && !query.sql.contains('{'), "{query:?}");
        }
    }
}
