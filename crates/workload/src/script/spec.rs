//! What may be said about script files, and the checks that reject the rest.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::{
    program::{build::REQUEST_ID, value::Value},
    spec::{Face, Invariant, Isolation, SpecError},
};

/// As pgbench.
const SCRIPTS_MAX: usize = 128;
/// Any larger weight is a slip of the pen.
pub(crate) const WEIGHT_MAX: f64 = 1e6;

/// Scripts and what they are run with.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct ScriptSpec {
    /// Always `script`.
    pub kind: Kind,
    /// Everything random follows from it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// Always `statement`: a script says itself what it pipelines.
    #[serde(default)]
    pub face: Face,
    /// Always read committed: a script says itself how it isolates.
    #[serde(default)]
    pub isolation: Isolation,
    /// Value of `:scale`.
    #[serde(default = "one")]
    pub scale: i64,
    /// One kind of transaction each.
    #[schemars(length(min = 1, max = SCRIPTS_MAX))]
    pub scripts: Vec<Script>,
    /// Variables that are set from the start, as pgbench's `-D`.
    #[serde(default)]
    pub variables: BTreeMap<String, Json>,
    /// What must hold before and after any run.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
}

/// A script file.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// Its name: that of the kind of transaction, and in errors.
    pub name: String,
    /// Its content.
    pub text: String,
    /// Its share is its weight over the sum of all.
    #[serde(default = "unit")]
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
    pub weight: f64,
    /// A query of one column: the `:request_id` of each of its requests that is committed, so that
    /// after a disaster those that were acknowledged are found again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub witness: Option<String>,
}

/// Discriminates the workloads' specifications.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This one.
    Script,
}

pub(crate) fn default_seed() -> u64 {
    42
}

fn one() -> i64 {
    1
}

pub(crate) fn unit() -> f64 {
    1.0
}

impl ScriptSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// Unknown keys, values of the wrong type or out of range.
    pub fn from_json(value: &Json) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_value(value.clone())
            .map_err(|error| SpecError::unread("workload script", &error))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        if self.face != Face::Statement {
            let asked = format!("{:?}", self.face).to_lowercase();
            let fact = format!("face is {asked}, a script allows statement");
            let hint = "Use \\startpipeline and \\endpipeline in the script.";
            return Err(SpecError::new(fact, hint));
        }
        if self.isolation != Isolation::ReadCommitted {
            let fact = format!(
                "isolation is {}, a script allows read committed",
                self.isolation.sql().to_lowercase()
            );
            let hint = "Write BEGIN ISOLATION LEVEL … in the script, or set \
                        default_transaction_isolation.";
            return Err(SpecError::new(fact, hint));
        }
        let count = self.scripts.len();
        if !(1..=SCRIPTS_MAX).contains(&count) {
            let fact = format!("scripts are {count}, allowed are 1 to {SCRIPTS_MAX}");
            return Err(SpecError::plain(fact));
        }
        check_weights(self.scripts.iter().map(|script| (script.name.as_str(), script.weight)))
    }
}

/// Names are different, weights possible, and not all of them 0.
pub(crate) fn check_weights<'a>(
    named: impl Iterator<Item = (&'a str, f64)>,
) -> Result<(), SpecError> {
    let mut known = Vec::new();
    let mut sum = 0.0;
    for (name, weight) in named {
        if name.trim().is_empty() || name.contains('\n') {
            return Err(SpecError::plain("a name is empty or has several lines".into()));
        }
        if known.contains(&name) {
            return Err(SpecError::plain(format!("name {name} stands twice")));
        }
        if !(0.0..=WEIGHT_MAX).contains(&weight) {
            let fact = format!("weight of {name} is {weight}, allowed is 0 to {WEIGHT_MAX}");
            return Err(SpecError::plain(fact));
        }
        known.push(name);
        sum += weight;
    }
    if sum > 0.0 {
        return Ok(());
    }
    Err(SpecError::plain("every weight is 0, at least one must be above".into()))
}

/// A variable's value in a specification.
pub(crate) fn variable(name: &str, value: &Json) -> Result<Value, SpecError> {
    if name == REQUEST_ID {
        let fact = format!("variable {name} is the number of each request, and cannot be set");
        return Err(SpecError::new(fact, "Give yours another name."));
    }
    let odd = || {
        let fact = format!("variable {name} is {value}, allowed are text and numbers");
        SpecError::plain(fact)
    };
    Ok(match value {
        Json::Bool(value) => Value::Bool(*value),
        Json::String(text) => Value::Text(text.as_str().into()),
        Json::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Double(number.as_f64().ok_or_else(odd)?),
        },
        _ => return Err(odd()),
    })
}
