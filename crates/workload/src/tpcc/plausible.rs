//! What a server would plausibly answer to the statements of TPC-C, by their names: rows of mean
//! size (clause 1.3 and 4.3.3.1), three customers of a last name, ten lines of an order, one
//! customer in ten of bad credit, one stock row in ten "ORIGINAL". Every item exists but the unused
//! one; every district has an order to deliver.

mod bmsql;
mod procedures;
mod text;

use super::spec::{Face, Rules, TpccSpec};
use crate::plausible::Plausible;
use text::{new_order, others, payment};

/// The answer to the statement of this name; `None`: it is not known here.
#[must_use]
pub fn answer(spec: &TpccSpec, name: &str) -> Option<Plausible> {
    match (spec.rules, spec.face, name) {
        (_, _, "begin" | "begin_snapshot") => Some(Plausible::done("BEGIN")),
        (_, _, "commit") => Some(Plausible::done("COMMIT")),
        (_, _, "rollback") => Some(Plausible::done("ROLLBACK")),
        (Rules::BenchmarkSql5, _, _) => bmsql::answer(name),
        (Rules::Text, Face::Procedure, _) => procedures::answer(name),
        (Rules::Text, _, _) => new_order(name).or_else(|| payment(name)).or_else(|| others(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{plausible::Bound, tpcc::cardinalities::ITEMS};
    use crate::{tpcc::Tpcc, workload::Workload};
    use serde_json::json;
    use wire::Param;

    #[test]
    fn every_statement_of_every_face_has_an_answer() {
        for spec in [
            json!({"kind": "tpcc"}),
            json!({"kind": "tpcc", "face": "pipeline"}),
            json!({"kind": "tpcc", "face": "procedure"}),
            json!({"kind": "tpcc", "schema": "bmsql", "rules": "benchmarksql-5",
                   "delivery": "inline"}),
        ] {
            let tpcc = Tpcc::from_spec(&spec).expect("a specification");
            for statement in tpcc.statements() {
                assert!(tpcc.plausible(statement).is_some(), "{spec}: {}", statement.name);
            }
            assert!(answer(tpcc.spec(), "no_such_statement").is_none());
        }
    }

    #[test]
    fn the_unused_item_has_no_row() {
        let mut bound = Vec::new();
        Param::I32s(&[7, ITEMS + 1, 10]).encode(&mut bound);
        let mut out = Vec::new();
        new_order("no_items").expect("known").answer(Bound(&bound), &mut out);
        assert!(out.ends_with(b"SELECT 2\0"));
    }

    #[test]
    fn one_customer_in_ten_is_of_bad_credit_whoever_is_named() {
        let (names, pays) = (payment("pay_names").expect("known"), payment("pay_customer"));
        let pays = pays.expect("known");
        let mut bad = 0;
        for number in 0..1000 {
            let mut bound = Vec::new();
            for param in [Param::Null, Param::Null, Param::Text(&number.to_string())] {
                param.encode(&mut bound);
            }
            let mut found = Vec::new();
            names.answer(Bound(&bound), &mut found);
            // Three rows of one integer: 5 bytes of header, 2 of count, 4 of length, the value.
            let middle = found[15 + 11..15 + 15].try_into().expect("an integer");
            let mut bound = Vec::new();
            for param in [Param::Null, Param::Null, Param::I32(i32::from_be_bytes(middle))] {
                param.encode(&mut bound);
            }
            let mut paid = Vec::new();
            pays.answer(Bound(&bound), &mut paid);
            bad += usize::from(paid.windows(2).any(|pair| pair == b"BC"));
        }
        assert!((50..150).contains(&bad), "{bad} of 1000");
    }
}
