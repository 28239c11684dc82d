//! All workloads, by the `kind` of their specifications: the one place that knows them all.

use serde_json::Value;
use wire::Timestamp;

use crate::{
    dataset::Dataset,
    mix, pgbench, script,
    spec::SpecError,
    tpcc::{self, Tpcc},
    workload::Workload,
};

/// The kinds, as a specification names them.
pub const KINDS: [&str; 6] = ["tpcc", "tpcb", "simple-update", "select-only", "mix", "script"];

/// What is to be done with a workload whose type is known only when its specification is read.
pub trait Visitor {
    /// What comes of it.
    type Output;

    /// Does it.
    fn visit<W: Workload>(self, workload: W) -> Self::Output;
}

enum Known {
    Tpcc,
    Pgbench,
    Mix,
    Script,
}

fn known(spec: &Value) -> Result<Known, SpecError> {
    match spec.get("kind").and_then(Value::as_str) {
        Some("tpcc") => Ok(Known::Tpcc),
        Some("tpcb" | "simple-update" | "select-only") => Ok(Known::Pgbench),
        Some("mix") => Ok(Known::Mix),
        Some("script") => Ok(Known::Script),
        kind => {
            let (kind, known) = (kind.unwrap_or("missing"), KINDS.join(", "));
            Err(SpecError::plain(format!("workload.kind is {kind}, known are {known}")))
        }
    }
}

/// Builds the workload of a specification and hands it to the visitor.
///
/// # Errors
///
/// The kind is unknown, or the workload refuses its specification.
pub fn with<V: Visitor>(spec: &Value, visitor: V) -> Result<V::Output, SpecError> {
    Ok(match known(spec)? {
        Known::Tpcc => visitor.visit(Tpcc::from_spec(spec)?),
        Known::Pgbench => visitor.visit(pgbench::Pgbench::from_spec(spec)?),
        Known::Mix => visitor.visit(mix::programs(&mix::MixSpec::from_json(spec)?)?),
        Known::Script => visitor.visit(script::programs(&script::ScriptSpec::from_json(spec)?)?),
    })
}

/// The workload as JSON: name, version, specification, kinds and mix, statements, tables, indexes,
/// conditions, checks of the load, deviations, size on disk.
///
/// # Errors
///
/// As [`with`].
pub fn describe(spec: &Value) -> Result<Value, SpecError> {
    match known(spec)? {
        Known::Tpcc => tpcc::Tpcc::from_spec(spec).map(|tpcc| tpcc.describe()),
        Known::Pgbench => pgbench::describe(spec),
        Known::Mix => mix::describe(spec),
        Known::Script => script::describe(spec),
    }
}

/// The dataset of a workload's specification; `loaded_at` is the time that its rows carry.
///
/// # Errors
///
/// The specification is refused, or is of a kind that has no data of its own.
pub fn dataset(spec: &Value, loaded_at: Timestamp) -> Result<Box<dyn Dataset>, SpecError> {
    match spec.get("kind").and_then(Value::as_str) {
        Some("tpcc") => Ok(Box::new(Tpcc::from_spec(spec)?.dataset(loaded_at))),
        Some("tpcb" | "simple-update" | "select-only") => {
            let spec = pgbench::PgbenchSpec::from_json(spec)?;
            Ok(Box::new(pgbench::PgbenchDataset::new(spec)))
        }
        kind => {
            let kind = kind.unwrap_or("missing");
            let known = "tpcc, tpcb, simple-update, select-only";
            Err(SpecError::plain(format!("workload.kind is {kind}, those with data are {known}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    struct Kinds;

    impl Visitor for Kinds {
        type Output = Vec<String>;

        fn visit<W: Workload>(self, workload: W) -> Vec<String> {
            workload.kinds().to_vec()
        }
    }

    #[test]
    fn every_kind_is_built_and_described_alike() {
        let transaction = json!({"name": "look", "statements": ["SELECT 1"]});
        for kind in KINDS {
            let mut spec = json!({"kind": kind});
            match kind {
                "mix" => spec["transactions"] = json!([transaction]),
                "script" => spec["scripts"] = json!([{"name": "look", "text": "SELECT 1"}]),
                _ => {}
            }
            let described = describe(&spec).expect(kind);
            assert_eq!(json!(with(&spec, Kinds).expect(kind)), described["kinds"], "{kind}");
            for key in [
                "name",
                "version",
                "spec",
                "mix",
                "statements",
                "tables",
                "indexes",
                "conditions",
                "load_checks",
                "deviations",
                "disk_bytes_estimate",
            ] {
                assert!(!described[key].is_null(), "{kind} has no {key}");
            }
            let again = describe(&described["spec"]).expect("the resolved specification");
            assert_eq!(again, described, "{kind}");
        }
    }

    #[test]
    fn unknown_kinds_are_refused_with_those_that_are_known() {
        let fact = describe(&json!({"kind": "tpch"})).expect_err("unknown").fact;
        assert!(fact.starts_with("workload.kind is tpch, known are tpcc, tpcb"), "{fact}");
        assert!(with(&json!({}), Kinds).expect_err("missing").fact.contains("is missing"));
    }
}
