//! What may be said about a TPC-C workload, and the checks that reject the rest.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use thiserror::Error;

use super::schema::WAREHOUSES_MAX;

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
    fn new(fact: String, hint: &str) -> Self {
        Self { fact, hint: Some(hint.to_owned()) }
    }
}

/// Parameters of TPC-C; every one has a default but the kind.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TpccSpec {
    /// Always `tpcc`.
    pub kind: Kind,
    /// Tables and their names.
    #[serde(default)]
    pub schema: Schema,
    /// Scale: number of warehouses.
    #[serde(default = "ten")]
    pub warehouses: i32,
    /// Everything random follows from it.
    #[serde(default = "default_seed")]
    pub seed: u64,
    /// How statements travel.
    #[serde(default)]
    pub face: Face,
    /// Weights of the five kinds; their sum may be anything.
    #[serde(default)]
    pub mix: Mix,
    /// Of the transactions that write, and of Stock-Level.
    #[serde(default)]
    pub isolation: Isolation,
    /// Whether a terminal waits for its deliveries.
    #[serde(default)]
    pub delivery: DeliveryMode,
    /// Whether a terminal keeps to one warehouse.
    #[serde(default)]
    pub home: Home,
    /// Times the keying times of clause 5.2.5.2; 0: none.
    #[serde(default)]
    pub keying_multiplier: f64,
    /// Times the mean think times of clause 5.2.5.4; 0: none.
    #[serde(default)]
    pub think_multiplier: f64,
    /// Constants that the database was loaded with; absent: those that follow from the seed.
    #[serde(default)]
    pub c_load: Option<LoadConstants>,
    /// Whether the loader adds the foreign keys of clause 1.4.
    #[serde(default)]
    pub foreign_keys: bool,
}

/// Discriminates the workloads' specifications.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This one.
    Tpcc,
}

/// Tables, their names, types and indexes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Schema {
    /// As the text suggests.
    #[default]
    Spec,
    /// BenchmarkSQL 5's: named, not built yet.
    Bmsql,
}

/// How the statements of a transaction travel.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Face {
    /// One statement, one round trip.
    #[default]
    Statement,
    /// As few round trips as data dependencies allow: named, not built yet.
    Pipeline,
    /// One call: named, not built yet.
    Procedure,
}

/// Whether a terminal waits for its deliveries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// Queued and performed in the background (clause 2.7.2).
    #[default]
    Deferred,
    /// Performed while the terminal waits.
    Inline,
}

/// Whether a terminal keeps to one warehouse.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// One warehouse and one district for each terminal (clause 2.4.1.1, 2.8.1.1).
    #[default]
    Fixed,
    /// Any warehouse and district for each request.
    Random,
}

/// Isolation level of the transactions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
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

/// Weights of the transaction kinds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// New-Order.
    pub new_order: f64,
    /// Payment.
    pub payment: f64,
    /// Order-Status.
    pub order_status: f64,
    /// Delivery.
    pub delivery: f64,
    /// Stock-Level.
    pub stock_level: f64,
}

impl Default for Mix {
    /// The text's minima (clause 5.2.3), the rest New-Order.
    fn default() -> Self {
        Self { new_order: 45.0, payment: 43.0, order_status: 4.0, delivery: 4.0, stock_level: 4.0 }
    }
}

impl Mix {
    /// In the order of the kinds.
    #[must_use]
    pub fn weights(&self) -> [f64; 5] {
        [self.new_order, self.payment, self.order_status, self.delivery, self.stock_level]
    }

    /// In the order of the kinds, summing up to 1.
    #[must_use]
    pub fn shares(&self) -> [f64; 5] {
        let sum: f64 = self.weights().iter().sum();
        self.weights().map(|weight| weight / sum)
    }
}

/// Constants of `NURand` that the rows were made with; clause 2.1.6.1 compares them with the run's.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct LoadConstants {
    /// Of the last names, in 0..=255.
    pub c_last: i32,
}

fn ten() -> i32 {
    10
}

fn default_seed() -> u64 {
    42
}

impl TpccSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// An unknown key, a value of the wrong type or out of range, or something not built yet.
    pub fn from_json(value: &Value) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_value(value.clone())
            .map_err(|error| SpecError { fact: format!("workload tpcc: {error}"), hint: None })?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        if !(1..=WAREHOUSES_MAX).contains(&self.warehouses) {
            let fact =
                format!("warehouses is {}, allowed is 1 to {WAREHOUSES_MAX}", self.warehouses);
            return Err(SpecError::new(fact, "One warehouse is about 100 MB."));
        }
        if self.schema == Schema::Bmsql {
            let fact = "schema is bmsql, which is not built yet".to_owned();
            return Err(SpecError::new(fact, "Use schema spec."));
        }
        if self.face != Face::Statement {
            let fact = format!(
                "face is {}, which is not built yet",
                format!("{:?}", self.face).to_lowercase()
            );
            return Err(SpecError::new(fact, "Use face statement."));
        }
        for (name, value) in [
            ("keying_multiplier", self.keying_multiplier),
            ("think_multiplier", self.think_multiplier),
        ] {
            if !(0.0..=MULTIPLIER_MAX).contains(&value) {
                let fact = format!("{name} is {value}, allowed is 0 to {MULTIPLIER_MAX}");
                return Err(SpecError::new(fact, "1 gives the text's times, 0 none."));
            }
        }
        if let Some(LoadConstants { c_last }) = self.c_load
            && !(0..=255).contains(&c_last)
        {
            let fact = format!("c_load.c_last is {c_last}, allowed is 0 to 255");
            return Err(SpecError::new(fact, "It stands in table pgdyno_load of the database."));
        }
        self.check_mix()
    }

    fn check_mix(&self) -> Result<(), SpecError> {
        let weights = self.mix.weights();
        for (kind, weight) in super::KINDS.iter().zip(weights) {
            if !(0.0..=WEIGHT_MAX).contains(&weight) {
                let fact = format!("mix.{kind} is {weight}, allowed is 0 to {WEIGHT_MAX}");
                return Err(SpecError::new(fact, "Weights are shares such as 45 or 43.2."));
            }
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            let fact = "every weight of the mix is 0, at least one must be above".to_owned();
            return Err(SpecError::new(fact, "The text's mix is 45, 43, 4, 4, 4."));
        }
        Ok(())
    }
}

/// Beyond it a terminal would think for hours: a slip of the pen.
const MULTIPLIER_MAX: f64 = 1000.0;
/// Any larger weight is a slip of the pen as well.
const WEIGHT_MAX: f64 = 1e6;

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refused(value: &Value) -> String {
        TpccSpec::from_json(value).expect_err("must be refused").fact
    }

    #[test]
    fn only_the_kind_is_needed() {
        let spec = TpccSpec::from_json(&json!({"kind": "tpcc"})).expect("a specification");
        assert_eq!((spec.warehouses, spec.mix), (10, Mix::default()));
        assert_eq!(spec.isolation, Isolation::ReadCommitted);
        assert_eq!(spec.delivery, DeliveryMode::Deferred);
        let value = serde_json::to_value(&spec).expect("JSON");
        assert_eq!(TpccSpec::from_json(&value).expect("the same again"), spec);
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_its_value() {
        for (value, part) in [
            (json!({"kind": "tpcc", "warehouse": 1}), "unknown field `warehouse`"),
            (json!({"kind": "tpcb"}), "unknown variant `tpcb`"),
            (json!({"kind": "tpcc", "warehouses": 0}), "warehouses is 0, allowed is 1 to"),
            (json!({"kind": "tpcc", "warehouses": 1.5}), "1.5"),
            (json!({"kind": "tpcc", "schema": "bmsql"}), "schema is bmsql, which is not built yet"),
            (json!({"kind": "tpcc", "face": "pipeline"}), "face is pipeline, which is not built"),
            (json!({"kind": "tpcc", "face": "procedure"}), "face is procedure, which is not built"),
            (json!({"kind": "tpcc", "think_multiplier": -1.0}), "think_multiplier is -1, allowed"),
            (json!({"kind": "tpcc", "c_load": {"c_last": 256}}), "c_load.c_last is 256, allowed"),
            (json!({"kind": "tpcc", "isolation": "snapshot"}), "unknown variant `snapshot`"),
            (
                json!({"kind": "tpcc", "mix": {"new_order": -1, "payment": 0, "order_status": 0,
                       "delivery": 0, "stock_level": 0}}),
                "mix.new_order is -1, allowed is 0",
            ),
            (
                json!({"kind": "tpcc", "mix": {"new_order": 0, "payment": 0, "order_status": 0,
                       "delivery": 0, "stock_level": 0}}),
                "every weight of the mix is 0",
            ),
            (json!({"kind": "tpcc", "mix": {"new_order": 1}}), "missing field `payment`"),
        ] {
            let fact = refused(&value);
            assert!(fact.contains(part), "{value}: {fact}");
        }
    }
}
