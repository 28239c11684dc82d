//! What the specifications of all workloads have in common: how one is refused, how statements
//! travel, isolation levels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::description::Condition;

/// Jaro-Winkler likeness from which on a name is taken for a slip of another.
const NEAR: f64 = 0.8;

/// Why a specification is refused: a fact with the values, and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{fact}")]
pub struct SpecError {
    /// In lower case, without full stop.
    pub fact: String,
    /// A sentence, where there is something to do.
    pub hint: Option<String>,
}

impl SpecError {
    /// A refusal with advice.
    #[must_use]
    pub fn new(fact: String, hint: &str) -> Self {
        Self { fact, hint: Some(hint.to_owned()) }
    }

    /// A refusal that speaks for itself.
    #[must_use]
    pub fn plain(fact: String) -> Self {
        Self { fact, hint: None }
    }

    /// What stands at a place is no such thing; a key that nobody knows is told as a plan's is.
    #[must_use]
    pub fn unread(place: &str, error: &serde_json::Error) -> Self {
        let told = error.to_string();
        let quoted: Vec<&str> = told.split('`').skip(1).step_by(2).collect();
        let fact = match quoted.split_first() {
            Some((key, keys)) if told.starts_with("unknown field") => {
                format!("unknown key {key}{}; allowed: {}", meant(key, keys), keys.join(", "))
            }
            _ => told,
        };
        Self::plain(format!("{place}: {fact}"))
    }
}

/// The known name that a mistyped one is nearest to, where one is near.
#[must_use]
pub(crate) fn meant(name: &str, known: &[&str]) -> String {
    let likeness = |one: &&str| strsim::jaro_winkler(name, one);
    let nearest = known.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    match nearest {
        Some(one) if likeness(one) >= NEAR => format!(", did you mean {one}"),
        _ => String::new(),
    }
}

/// How the statements of a transaction travel.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Face {
    /// One statement, one round trip.
    #[default]
    Statement,
    /// As few round trips as data dependencies allow.
    Pipeline,
    /// One call of a function of our own in the database.
    Procedure,
}

impl Face {
    /// As a specification spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Pipeline => "pipeline",
            Self::Procedure => "procedure",
        }
    }
}

/// Isolation level of the transactions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub enum Isolation {
    /// PostgreSQL's default.
    #[default]
    #[serde(rename = "read committed")]
    ReadCommitted,
    /// Snapshot isolation.
    #[serde(rename = "repeatable read")]
    RepeatableRead,
    /// Serializable snapshot isolation.
    #[serde(rename = "serializable")]
    Serializable,
}

impl Isolation {
    /// As SQL has it.
    #[must_use]
    pub fn sql(self) -> &'static str {
        match self {
            Self::ReadCommitted => "READ COMMITTED",
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// What must hold.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Invariant {
    /// What must hold, as a sentence for the report.
    pub title: String,
    /// Returns the rows that violate it.
    pub sql: String,
}

impl Invariant {
    /// As conditions, numbered from 1.
    #[must_use]
    pub fn conditions(all: &[Self]) -> Vec<Condition> {
        let condition = |(one, number): (&Self, u32)| Condition {
            number,
            title: one.title.clone(),
            sql: one.sql.clone(),
        };
        all.iter().zip(1..).map(condition).collect()
    }
}
