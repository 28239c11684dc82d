//! What the specifications of all workloads have in common: how one is refused, how statements
//! travel, isolation levels.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::description::Condition;

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
