//! What may be said about a mix, and the checks that reject the rest.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    script::spec::{WEIGHT_MAX, check_weights, default_seed, unit},
    spec::{Face, Invariant, Isolation, SpecError},
};

/// A mix.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct MixSpec {
    /// Always `mix`.
    pub kind: Kind,
    /// Everything random follows from it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Statement or pipeline.
    #[serde(default)]
    pub face: Face,
    /// Of transactions that do not say otherwise.
    #[serde(default)]
    pub isolation: Isolation,
    /// Value of `:scale`.
    #[serde(default = "one")]
    pub scale: i64,
    /// Constants for bounds and expressions: numbers, or expressions of `:scale` and of variables
    /// whose names sort before theirs.
    #[serde(default)]
    pub variables: BTreeMap<String, Json>,
    /// Kinds of transactions.
    pub transactions: Vec<Transaction>,
    /// What must hold before and after any run.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
}

/// Discriminates the workloads' specifications.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This one.
    Mix,
}

/// A kind of transaction.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// Its share is its weight over the sum of all.
    #[serde(default = "unit")]
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
    pub weight: f64,
    /// Its own isolation level.
    #[serde(default)]
    pub isolation: Option<Isolation>,
    /// `BEGIN … READ ONLY`.
    #[serde(default)]
    pub read_only: bool,
    /// Whether it is a transaction block; without one, each statement commits by itself.
    #[serde(default = "yes")]
    pub begin: bool,
    /// What it executes, in order.
    pub statements: Vec<Sql>,
    /// A query of one column: the `:request_id` of each of its requests that is committed, so that
    /// after a disaster those that were acknowledged are found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
    /// Its parameters, by name.
    #[serde(default)]
    pub params: BTreeMap<String, Parameter>,
}

/// A statement.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(untagged, expecting = "a statement must be text, or a table of sql and rows")]
pub enum Sql {
    /// SQL alone.
    Plain(String),
    /// SQL, and how many rows it must return or change.
    Counted(Counted),
}

/// A statement whose rows are counted: a transaction that finds nothing measures nothing.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Counted {
    /// SQL with `:name` where a parameter stands.
    pub sql: String,
    /// Rows that it returns or changes, exactly.
    pub rows: u64,
}

/// A parameter: its type, and exactly one source of its values.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Type that the statements declare.
    #[serde(rename = "type")]
    pub kind: ParameterKind,
    /// Places of a `numeric`; bounds count in whole units.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub places: Option<u8>,
    /// `[low, high]`: all values with the same probability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uniform: Option<[Bound; 2]>,
    /// `[low, high, s]`: the k-th value with a probability proportional to `k^-s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zipf: Option<(Bound, Bound, f64)>,
    /// `[a, low, high, c]`: TPC-C's `NURand`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nurand: Option<[Bound; 4]>,
    /// `[low, high, parameter]`: as pgbench's `random_gaussian`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub normal: Option<(Bound, Bound, f64)>,
    /// `[low, high, parameter]`: as pgbench's `random_exponential`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exponential: Option<(Bound, Bound, f64)>,
    /// A start: numbers from there on that no other request of a run has. For `bigint`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<Bound>,
    /// `[low, high]`: random characters and digits of such a length. For `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<[Bound; 2]>,
    /// An expression of variables and parameters, e.g. `:id % 10`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

/// Type of a parameter.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ParameterKind {
    /// `integer`.
    Int,
    /// `bigint`.
    Bigint,
    /// `numeric`.
    Numeric,
    /// `text`.
    Text,
}

/// A whole number, or an expression of variables that is one.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(untagged, expecting = "a bound must be a whole number, or an expression as text")]
pub enum Bound {
    /// Itself.
    Number(i64),
    /// E.g. `:scale * 100000`.
    Expression(String),
}

fn one() -> i64 {
    1
}

fn yes() -> bool {
    true
}

impl Sql {
    /// The SQL.
    #[must_use]
    pub fn text(&self) -> &str {
        match self {
            Self::Plain(sql) | Self::Counted(Counted { sql, .. }) => sql,
        }
    }

    /// How many rows it must have.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        match self {
            Self::Plain(_) => None,
            Self::Counted(counted) => Some(counted.rows),
        }
    }
}

impl MixSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// Unknown keys, values of the wrong type or out of range.
    pub fn from_json(value: &Json) -> Result<Self, SpecError> {
        if let Some(error) = unknown_in_transactions(value) {
            return Err(error);
        }
        let spec: Self = serde_json::from_value(value.clone())
            .map_err(|error| SpecError::unread("workload mix", &error))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        if self.face == Face::Procedure {
            let fact = "face is procedure, a mix allows statement and pipeline".into();
            return Err(SpecError::new(fact, "Call a function of your own in a statement."));
        }
        if self.transactions.is_empty() {
            return Err(SpecError::plain("mix has no transaction".into()));
        }
        check_weights(self.transactions.iter().map(|one| (one.name.as_str(), one.weight)))?;
        for transaction in &self.transactions {
            let Transaction { name, isolation, read_only, begin, .. } = transaction;
            if transaction.statements.is_empty() {
                return Err(SpecError::plain(format!("transaction {name} has no statement")));
            }
            if !begin && (isolation.is_some() || *read_only) {
                let fact = format!(
                    "transaction {name} has begin = false, but an isolation level or read_only"
                );
                return Err(SpecError::new(fact, "Both need a transaction block."));
            }
            if !begin && self.isolation != Isolation::ReadCommitted {
                let fact = format!(
                    "transaction {name} has begin = false, and the mix is {}",
                    self.isolation.sql().to_lowercase()
                );
                return Err(SpecError::new(fact, "An isolation level needs a transaction block."));
            }
        }
        Ok(())
    }
}

/// A mistake within a transaction, told with its name: the error of the whole mix would have none.
fn unknown_in_transactions(value: &Json) -> Option<SpecError> {
    let transactions = value.get("transactions")?.as_array()?;
    transactions.iter().enumerate().find_map(|(at, transaction)| {
        let named = transaction.get("name").and_then(Json::as_str);
        let name = named.map_or((at + 1).to_string(), str::to_owned);
        if let Some(params) = transaction.get("params").and_then(Json::as_object) {
            for (parameter, value) in params {
                if let Err(error) = serde_json::from_value::<Parameter>(value.clone()) {
                    let place = format!("transaction {name}, parameter {parameter}");
                    return Some(SpecError::unread(&place, &error));
                }
            }
        }
        let read = serde_json::from_value::<Transaction>(transaction.clone());
        read.err().map(|error| SpecError::unread(&format!("transaction {name}"), &error))
    })
}
