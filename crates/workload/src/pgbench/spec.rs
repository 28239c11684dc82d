//! What may be said about a built-in workload of pgbench.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::schema::SCALE_MAX;
use crate::spec::{Face, Isolation, SpecError};

/// Raised whenever the rows loaded, the requests or the statements change.
pub const VERSION: u32 = 1;

/// Parameters; every one has a default but the kind.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct PgbenchSpec {
    /// Which of the workloads.
    pub kind: Kind,
    /// Branches; each has ten tellers and 100,000 accounts.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = SCALE_MAX))]
    pub scale: i32,
    /// Everything random follows from it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How statements travel.
    #[serde(default)]
    pub face: Face,
    /// Of the transactions; `select-only` has none.
    #[serde(default)]
    pub isolation: Isolation,
    /// Whether the loader adds the foreign keys of `pgbench -i --foreign-keys`.
    #[serde(default)]
    pub foreign_keys: bool,
}

/// Discriminates the workloads' specifications.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// TPC-B-like: three balances, a look at one, a line of history.
    Tpcb,
    /// Without tellers and branches, which everybody waits for (pgbench -N).
    SimpleUpdate,
    /// Looks at a balance (pgbench -S).
    SelectOnly,
}

impl Kind {
    /// Its name, also that of its one kind of transaction.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tpcb => "tpcb",
            Self::SimpleUpdate => "simple-update",
            Self::SelectOnly => "select-only",
        }
    }
}

fn ten() -> i32 {
    10
}

fn default_seed() -> u64 {
    42
}

impl PgbenchSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// An unknown key, a value of the wrong type or out of range.
    pub fn from_json(value: &Value) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_value(value.clone())
            .map_err(|error| SpecError::unread("workload", &error))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        if !(1..=SCALE_MAX).contains(&self.scale) {
            let fact = format!("scale is {}, allowed is 1 to {SCALE_MAX}", self.scale);
            return Err(SpecError::new(fact, "Scale 1 has 100,000 accounts, about 15 MB."));
        }
        if self.kind != Kind::SelectOnly {
            return Ok(());
        }
        if self.isolation != Isolation::ReadCommitted {
            let fact = format!(
                "isolation is {}, select-only has no transaction block",
                self.isolation.sql().to_lowercase()
            );
            let hint = "Set default_transaction_isolation instead.";
            return Err(SpecError::new(fact, hint));
        }
        if self.face == Face::Procedure {
            let fact = "face is procedure, select-only allows statement and pipeline".into();
            return Err(SpecError::new(fact, "A call would replace one statement by another."));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_the_kind_is_needed() {
        let spec = PgbenchSpec::from_json(&json!({"kind": "tpcb"})).expect("a specification");
        assert_eq!((spec.scale, spec.seed, spec.face), (10, 42, Face::Statement));
        let value = serde_json::to_value(&spec).expect("JSON");
        assert_eq!(PgbenchSpec::from_json(&value).expect("the same again"), spec);
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_its_value() {
        for (value, part) in [
            (json!({"kind": "tpcb", "scale": 0}), "scale is 0, allowed is 1 to 100000"),
            (json!({"kind": "tpcb", "warehouses": 1}), "unknown key warehouses; allowed: "),
            (json!({"kind": "tpch"}), "unknown variant `tpch`"),
            (
                json!({"kind": "select-only", "isolation": "serializable"}),
                "isolation is serializable, select-only has no transaction block",
            ),
            (
                json!({"kind": "select-only", "face": "procedure"}),
                "face is procedure, select-only allows statement and pipeline",
            ),
        ] {
            let fact = PgbenchSpec::from_json(&value).expect_err("must be refused").fact;
            assert!(fact.contains(part), "{value}: {fact}");
        }
    }
}
