//! All workloads, by the `kind` of their specifications: the one place that knows them all.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use wire::Timestamp;

use crate::{
    dataset::Dataset,
    description::Description,
    mix::{self, MixSpec},
    pgbench::{self, Pgbench, PgbenchDataset, PgbenchSpec},
    script::{self, ScriptSpec},
    spec::SpecError,
    tpcc::{Tpcc, TpccSpec, describe::Particulars},
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

/// The specification of a workload, checked.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum WorkloadSpec {
    /// TPC-C.
    Tpcc(TpccSpec),
    /// One of pgbench's.
    Pgbench(PgbenchSpec),
    /// A mix of SQL transactions.
    Mix(MixSpec),
    /// Script files.
    Script(ScriptSpec),
}

impl WorkloadSpec {
    /// Reads and checks a specification; `kind` names its workload.
    ///
    /// # Errors
    ///
    /// The kind is unknown, or the workload refuses its specification.
    pub fn from_json(spec: &Value) -> Result<Self, SpecError> {
        match spec.get("kind").and_then(Value::as_str) {
            Some("tpcc") => TpccSpec::from_json(spec).map(Self::Tpcc),
            Some("tpcb" | "simple-update" | "select-only") => {
                PgbenchSpec::from_json(spec).map(Self::Pgbench)
            }
            Some("mix") => MixSpec::from_json(spec).map(Self::Mix),
            Some("script") => ScriptSpec::from_json(spec).map(Self::Script),
            kind => {
                let (kind, known) = (kind.unwrap_or("missing"), KINDS.join(", "));
                Err(SpecError::plain(format!("workload.kind is {kind}, known are {known}")))
            }
        }
    }
}

/// Builds the workload of a specification and hands it to the visitor.
///
/// # Errors
///
/// Those of [`WorkloadSpec::from_json`]; a mix or a script cannot be compiled.
pub fn with<V: Visitor>(spec: &Value, visitor: V) -> Result<V::Output, SpecError> {
    Ok(match WorkloadSpec::from_json(spec)? {
        WorkloadSpec::Tpcc(spec) => visitor.visit(Tpcc::new(spec)),
        WorkloadSpec::Pgbench(spec) => visitor.visit(Pgbench::new(spec)),
        WorkloadSpec::Mix(spec) => visitor.visit(mix::programs(&spec)?),
        WorkloadSpec::Script(spec) => visitor.visit(script::programs(&spec)?),
    })
}

/// A workload, told without a server.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Described {
    /// What all workloads tell.
    #[serde(flatten)]
    pub description: Description,
    /// The specification, resolved: it says every key.
    pub spec: WorkloadSpec,
    /// What only TPC-C has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tpcc: Option<Particulars>,
}

/// What a workload is.
///
/// # Errors
///
/// As [`with`].
pub fn describe(spec: &Value) -> Result<Described, SpecError> {
    let spec = WorkloadSpec::from_json(spec)?;
    let (description, tpcc) = match &spec {
        WorkloadSpec::Tpcc(spec) => {
            let tpcc = Tpcc::new(spec.clone());
            (tpcc.describe(), Some(tpcc.particulars()))
        }
        WorkloadSpec::Pgbench(spec) => (pgbench::describe(spec), None),
        WorkloadSpec::Mix(spec) => (mix::describe(spec)?, None),
        WorkloadSpec::Script(spec) => (script::describe(spec)?, None),
    };
    Ok(Described { description, spec, tpcc })
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
            Ok(Box::new(PgbenchDataset::new(PgbenchSpec::from_json(spec)?)))
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
            assert_eq!(with(&spec, Kinds).expect(kind), described.description.kinds, "{kind}");
            assert_eq!(described.description.name, kind);
            assert_eq!(described.tpcc.is_some(), kind == "tpcc");
            let shares: f64 = described.description.mix.values().sum();
            assert!((shares - 1.0).abs() < 1e-9, "{kind}: {shares}");
            let resolved = json!(described.spec);
            assert_eq!(describe(&resolved).expect("the same again"), described, "{kind}");
        }
    }

    #[test]
    fn unknown_kinds_are_refused_with_those_that_are_known() {
        let fact = describe(&json!({"kind": "tpch"})).expect_err("unknown").fact;
        assert!(fact.starts_with("workload.kind is tpch, known are tpcc, tpcb"), "{fact}");
        assert!(with(&json!({}), Kinds).expect_err("missing").fact.contains("is missing"));
    }
}
