//! What may be said about a TPC-C workload, and the checks that reject the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dataset::{PARTITIONS_MAX, PartitionBy, Partitions};
pub use crate::spec::{Face, Isolation, SpecError};

/// Parameters of TPC-C; every one has a default but the kind.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct TpccSpec {
    /// Always `tpcc`.
    pub kind: Kind,
    /// Tables and their names.
    #[serde(default)]
    pub schema: Schema,
    /// Whose transactions: those of the text, or another program's.
    #[serde(default)]
    pub rules: Rules,
    /// Scale: number of warehouses.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = Schema::Spec.warehouses_max()))]
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
    #[schemars(range(min = 0.0, max = MULTIPLIER_MAX))]
    pub keying_multiplier: f64,
    /// Times the mean think times of clause 5.2.5.4; 0: none.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = MULTIPLIER_MAX))]
    pub think_multiplier: f64,
    /// Constants that the database was loaded with; absent: those that follow from the seed.
    #[serde(default)]
    pub c_load: Option<LoadConstants>,
    /// Whether the loader adds the foreign keys of clause 1.4.
    #[serde(default)]
    pub foreign_keys: bool,
    /// How tables with a column for the warehouse are partitioned; absent: not at all.
    #[serde(default)]
    pub partitions: Option<Partitions>,
    /// In which order the rows of orders are loaded.
    #[serde(default)]
    pub order: Order,
    /// How the warehouses are divided over several servers; absent: one has them all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blocks: Option<Blocks>,
}

/// Discriminates the workloads' specifications.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// This one.
    Tpcc,
}

/// Tables, their names, types and indexes.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Schema {
    /// As the text suggests.
    #[default]
    Spec,
    /// BenchmarkSQL 5's.
    Bmsql,
}

/// Whose statements a transaction consists of.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
pub enum Rules {
    /// The text's, in as few statements as they need.
    #[default]
    #[serde(rename = "text")]
    Text,
    /// `BenchmarkSQL` 5's, statement by statement, with its faults.
    #[serde(rename = "benchmarksql-5")]
    BenchmarkSql5,
}

/// Most servers that one TPC-C is divided over.
pub const BLOCKS_MAX: i32 = 1_000;

/// Into how many blocks of the same size the warehouses are divided.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Blocks {
    /// How many: one for each part of a load.
    #[schemars(range(min = 1, max = BLOCKS_MAX))]
    pub count: i32,
    /// Which of them a database holds, from 0; absent: all, as a load of all parts has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<i32>,
}

/// In which order the rows of orders, their lines and the undelivered ones lie in their tables.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// All of a district together, as `BenchmarkSQL` 5 loads them.
    #[default]
    Warehouse,
    /// The first order of every district, then the second of every district, and so on: as they
    /// would have arrived, and as `BenchmarkSQL` 6 loads them.
    Arrival,
}

/// Whether a terminal waits for its deliveries.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryMode {
    /// Queued and performed in the background (clause 2.7.2).
    #[default]
    Deferred,
    /// Performed while the terminal waits.
    Inline,
}

/// Whether a terminal keeps to one warehouse.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Home {
    /// One warehouse and one district for each terminal (clause 2.4.1.1, 2.8.1.1).
    #[default]
    Fixed,
    /// Any warehouse and district for each request.
    Random,
}

/// Weights of the transaction kinds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Mix {
    /// New-Order.
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
    pub new_order: f64,
    /// Payment.
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
    pub payment: f64,
    /// Order-Status.
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
    pub order_status: f64,
    /// Delivery.
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
    pub delivery: f64,
    /// Stock-Level.
    #[schemars(range(min = 0.0, max = WEIGHT_MAX))]
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
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct LoadConstants {
    /// Of the last names, in 0..=255.
    pub c_last: i32,
    /// `C_DELIVERY_CNT` of all customers after the load: 0 by the text, 1 where `BenchmarkSQL`
    /// loaded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub c_delivery_cnt: i32,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &i32) -> bool {
    *value == 0
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
    /// An unknown key, a value of the wrong type or out of range, or what does not go together.
    pub fn from_json(value: &Value) -> Result<Self, SpecError> {
        let spec: Self = serde_json::from_value(value.clone())
            .map_err(|error| SpecError::unread("workload tpcc", &error))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        let max = self.schema.warehouses_max();
        if !(1..=max).contains(&self.warehouses) {
            let fact = format!("warehouses is {}, allowed is 1 to {max}", self.warehouses);
            return Err(SpecError::new(fact, "One warehouse is about 100 MB."));
        }
        if self.rules == Rules::BenchmarkSql5 {
            check_benchmarksql(self)?;
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
        if let Some(LoadConstants { c_last, c_delivery_cnt }) = self.c_load {
            let in_range = [
                ("c_last", c_last, 255, "It stands in table pgdyno_load of the database."),
                ("c_delivery_cnt", c_delivery_cnt, 1, "It is 1 where BenchmarkSQL loaded."),
            ];
            for (name, value, max, hint) in in_range {
                if !(0..=max).contains(&value) {
                    let fact = format!("c_load.{name} is {value}, allowed is 0 to {max}");
                    return Err(SpecError::new(fact, hint));
                }
            }
        }
        self.check_partitions()?;
        self.check_blocks()?;
        self.check_mix()
    }

    fn check_partitions(&self) -> Result<(), SpecError> {
        let Some(Partitions { by, count }) = self.partitions else { return Ok(()) };
        if !(1..=PARTITIONS_MAX).contains(&count) {
            let fact = format!("partitions.count is {count}, allowed is 1 to {PARTITIONS_MAX}");
            return Err(SpecError::new(fact, "A query opens every partition it cannot rule out."));
        }
        if by == PartitionBy::Range && count > self.warehouses.unsigned_abs() {
            let fact = format!(
                "partitions.count is {count}, but there are {} warehouses",
                self.warehouses
            );
            return Err(SpecError::new(fact, "A range holds at least one warehouse."));
        }
        Ok(())
    }

    fn check_mix(&self) -> Result<(), SpecError> {
        let weights = self.mix.weights();
        for (kind, weight) in super::kinds::KINDS.iter().zip(weights) {
            if !(0.0..=WEIGHT_MAX).contains(&weight) {
                let fact = format!("mix.{kind} is {weight}, allowed is 0 to {WEIGHT_MAX}");
                return Err(SpecError::new(fact, "Weights are shares such as 45 or 43.2."));
            }
        }
        if weights.iter().sum::<f64>() <= 0.0 {
            let fact = "every weight of the mix is 0, at least one must be above".to_owned();
            let text = Mix::default().weights().map(|weight| weight.to_string()).join(", ");
            return Err(SpecError::new(fact, &format!("The text's mix is {text}.")));
        }
        Ok(())
    }
}

/// Beyond it a terminal would think for hours: a slip of the pen.
const MULTIPLIER_MAX: f64 = 1000.0;
/// Any larger weight is a slip of the pen as well.
const WEIGHT_MAX: f64 = 1e6;

/// Refuses what `BenchmarkSQL` 5 does not do.
fn check_benchmarksql(spec: &TpccSpec) -> Result<(), SpecError> {
    let wrong = [
        (spec.schema != Schema::Bmsql, "schema is spec", "schema bmsql"),
        (spec.face != Face::Statement, "face is not statement", "face statement"),
        (
            spec.isolation != Isolation::ReadCommitted,
            "isolation is not read committed",
            "isolation read committed",
        ),
        (spec.delivery != DeliveryMode::Inline, "delivery is deferred", "delivery inline"),
    ];
    match wrong.iter().find(|(is_wrong, ..)| *is_wrong) {
        None => Ok(()),
        Some((_, what, right)) => {
            let fact = format!("rules is benchmarksql-5, but {what}");
            Err(SpecError::new(fact, &format!("BenchmarkSQL 5 has {right}; say so.")))
        }
    }
}

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
    fn a_mix_of_nothing_is_told_that_of_the_text() {
        let mix = json!({"new_order": 0, "payment": 0, "order_status": 0, "delivery": 0,
                         "stock_level": 0});
        let error =
            TpccSpec::from_json(&json!({"kind": "tpcc", "mix": mix})).expect_err("must be refused");
        assert_eq!(error.hint.as_deref(), Some("The text's mix is 45, 43, 4, 4, 4."));
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_its_value() {
        for (value, part) in [
            (
                json!({"kind": "tpcc", "warehouse": 1}),
                "unknown key warehouse, did you mean warehouses; allowed: kind",
            ),
            (json!({"kind": "tpcb"}), "unknown variant `tpcb`"),
            (json!({"kind": "tpcc", "warehouses": 0}), "warehouses is 0, allowed is 1 to"),
            (
                json!({"kind": "tpcc", "schema": "bmsql", "warehouses": 60_001}),
                "allowed is 1 to 60000",
            ),
            (
                json!({"kind": "tpcc", "c_load": {"c_last": 0, "c_delivery_cnt": 2}}),
                "c_load.c_delivery_cnt is 2, allowed is 0 to 1",
            ),
            (json!({"kind": "tpcc", "warehouses": 1.5}), "1.5"),
            (json!({"kind": "tpcc", "face": "batch"}), "unknown variant `batch`"),
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
            (
                json!({"kind": "tpcc", "partitions": {"by": "hash", "count": 0}}),
                "partitions.count is 0, allowed is 1 to 10000",
            ),
            (
                json!({"kind": "tpcc", "partitions": {"by": "range", "count": 11}}),
                "partitions.count is 11, but there are 10 warehouses",
            ),
            (json!({"kind": "tpcc", "partitions": {"by": "list", "count": 2}}), "`list`"),
            (json!({"kind": "tpcc", "order": "random"}), "unknown variant `random`"),
        ] {
            let fact = refused(&value);
            assert!(fact.contains(part), "{value}: {fact}");
        }
    }
}
