//! The specification of a run, as JSON: unknown keys and impossible values are refused.

use std::thread::available_parallelism;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use workload::catalogue::WorkloadSpec;

use crate::{
    connection::spec::ConnectionSpec,
    error::RunError,
    hosts::{Begin, HostShare},
    parts::{self, PARTS_MAX, PartSpec},
    schedule::{
        arrivals::{ArrivalsSpec, RATE_MAX, RATE_MIN, WAITING_MAX},
        ramps::{self, FACTOR_MAX, STEPS_MAX, Step},
        slowdowns::{self, SLOWDOWNS_MAX, Slowdown},
        timeline::SECONDS_MAX,
    },
};

const VERSION: u32 = 1;
const CONNECTIONS_MAX: usize = 100_000;
/// So many fill a thread's turns, and two threads for eight wake their servers on two CPUs: more is
/// done at less cost than by one.
const CONNECTIONS_A_THREAD: usize = 4;
/// More than any machine has cores.
const THREADS_MAX: usize = 4096;
const TERMINALS_MAX: u32 = 10_000_000;
/// Of each terminal.
const REQUESTS_MAX: u64 = 1_000_000_000_000;
const WINDOW_MIN_S: f64 = 0.001;
const GIVE_UP_MIN_S: f64 = 0.1;

/// What to drive, against what, how long.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Of this format: 1.
    pub version: u32,
    /// The workload's own specification; `kind` names it.
    #[schemars(with = "WorkloadSpec")]
    pub workload: Value,
    /// The loaded database; of several, what they have in common.
    pub connection: ConnectionSpec,
    /// Sessions with the server, for each part; of all hosts together.
    #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
    pub connections: usize,
    /// Simulated users, for each part; of all hosts together.
    #[schemars(range(min = 1, max = TERMINALS_MAX))]
    pub terminals: u32,
    /// Threads of this host; absent: one for 4 connections, but no more than cores or terminals.
    #[serde(default)]
    #[schemars(range(min = 1, max = THREADS_MAX))]
    pub threads: Option<usize>,
    /// Whether requests come after answers, or at a rate.
    #[serde(default)]
    pub arrivals: ArrivalsSpec,
    /// Ramps and steps of the rate or of the number of active terminals; they fill the window.
    #[serde(default)]
    #[schemars(length(max = STEPS_MAX))]
    pub steps: Vec<Step>,
    /// Databases or schemas that are driven at once; absent: one.
    #[serde(default)]
    #[schemars(length(max = PARTS_MAX))]
    pub parts: Vec<PartSpec>,
    /// A server that follows the connection's, and answers some kinds; absent: there is none.
    #[serde(default)]
    pub replica: Option<ReplicaSpec>,
    /// Times in which every exchange is made slower on purpose, to see what that does.
    #[serde(default)]
    #[schemars(length(max = SLOWDOWNS_MAX))]
    pub slowdowns: Vec<Slowdown>,
    /// A file that is made in the driver's working directory, and told of each request that leaves
    /// something behind; absent: none. See `measure::ledger`.
    #[serde(default)]
    pub ledger: Option<String>,
    /// Requests of each terminal, after which it asks no more; when all have, the window ends.
    #[serde(default)]
    #[schemars(range(min = 1, max = REQUESTS_MAX))]
    pub requests_max: Option<u64>,
    /// Seconds before the window.
    #[serde(default = "ten_s")]
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    pub warmup_s: f64,
    /// Seconds that are measured.
    #[serde(default = "minute_s")]
    #[schemars(range(min = WINDOW_MIN_S, max = SECONDS_MAX))]
    pub window_s: f64,
    /// Seconds that requests in flight may take after the window.
    #[serde(default = "ten_s")]
    #[schemars(range(min = 0.0, max = SECONDS_MAX))]
    pub drain_s: f64,
    /// Repetitions of a request after 40001 or 40P01.
    #[serde(default = "ten")]
    pub retries_max: u32,
    /// Deferred requests that may wait in a thread's queue before its terminals do; absent: as many
    /// as the thread has connections.
    #[serde(default)]
    pub deferred_max: Option<usize>,
    /// Seconds without any connection after which the run is given up.
    #[serde(default = "half_minute_s")]
    #[schemars(range(min = GIVE_UP_MIN_S, max = SECONDS_MAX))]
    pub reconnect_give_up_s: f64,
    /// Which part of all this is this host's; absent: all of it.
    #[serde(default)]
    pub share: HostShare,
    /// When the warm-up begins.
    #[serde(default)]
    pub begin: Begin,
    /// For tests: measure with a debug build.
    #[serde(default)]
    pub allow_debug: bool,
}

/// A server that follows, for kinds that only read. It may be behind.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReplicaSpec {
    /// The same database there.
    pub connection: ConnectionSpec,
    /// Sessions with it; of all hosts together.
    #[schemars(range(min = 1, max = CONNECTIONS_MAX))]
    pub connections: usize,
    /// Kinds of transactions that it answers.
    pub kinds: Vec<String>,
}

fn ten() -> u32 {
    10
}

fn ten_s() -> f64 {
    10.0
}

fn half_minute_s() -> f64 {
    30.0
}

fn minute_s() -> f64 {
    60.0
}

impl Spec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// Unknown or missing keys, values out of range, a debug build.
    pub fn parse(json: &str) -> Result<Self, RunError> {
        let spec: Self = serde_json::from_str(json)
            .map_err(|e| RunError::spec(format!("specification of the run: {e}"), None))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), RunError> {
        if self.version != VERSION {
            let fact = format!("version is {}, this driver knows {VERSION}", self.version);
            return Err(RunError::spec(fact, None));
        }
        if cfg!(debug_assertions) && !self.allow_debug {
            return Err(RunError::spec(
                "driver is a debug build, its numbers would be worthless".into(),
                Some("Build it in release mode: `maturin develop --release`."),
            ));
        }
        within("connections", self.connections, 1, CONNECTIONS_MAX)?;
        within("terminals", self.terminals, 1, TERMINALS_MAX)?;
        within("warmup_s", self.warmup_s, 0.0, SECONDS_MAX)?;
        within("window_s", self.window_s, WINDOW_MIN_S, SECONDS_MAX)?;
        within("drain_s", self.drain_s, 0.0, SECONDS_MAX)?;
        within("reconnect_give_up_s", self.reconnect_give_up_s, GIVE_UP_MIN_S, SECONDS_MAX)?;
        self.share.check(self.connections, self.terminals)?;
        if let Some(threads) = self.threads {
            within("threads", threads, 1, self.threads_max())?;
        }
        if let Some(most) = self.requests_max {
            within("requests_max", most, 1, REQUESTS_MAX)?;
        }
        slowdowns::check(&self.slowdowns)?;
        parts::check(&self.parts)?;
        if let Some(replica) = &self.replica {
            within("replica.connections", replica.connections, 1, CONNECTIONS_MAX)?;
            self.share.check(replica.connections, self.terminals)?;
            if !self.parts.is_empty() {
                let fact = "replica and parts are both given".to_owned();
                return Err(RunError::spec(fact, Some("A replica is of one database.")));
            }
        }
        let all = self.connections * self.parts.len().max(1);
        within("connections of all parts", all, 1, CONNECTIONS_MAX)?;
        self.check_arrivals()
    }

    fn check_arrivals(&self) -> Result<(), RunError> {
        let ArrivalsSpec::Open { per_s, waiting_max, .. } = self.arrivals else {
            return ramps::check(&self.steps, self.window_s, 1.0);
        };
        within("arrivals.per_s", per_s, RATE_MIN, RATE_MAX)?;
        within("arrivals.waiting_max", waiting_max, 1, WAITING_MAX)?;
        let closed = |name: &str, value: &dyn std::fmt::Display| {
            RunError::spec(
                format!("arrivals.kind is open, but {name} is {value}"),
                Some("That is for a closed loop: leave it out, or set arrivals.kind to closed."),
            )
        };
        if let Some(most) = self.requests_max {
            return Err(closed("requests_max", &most));
        }
        if let Some(most) = self.deferred_max {
            return Err(closed("deferred_max", &most));
        }
        for name in ["keying_multiplier", "think_multiplier"] {
            let multiplier = self.workload.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            if multiplier > 0.0 {
                return Err(closed(&format!("workload.{name}"), &multiplier));
            }
        }
        ramps::check(&self.steps, self.window_s, FACTOR_MAX)
    }

    /// A thread without a connection or a terminal would do nothing.
    fn threads_max(&self) -> usize {
        let terminals = self.share.of_terminals(self.terminals);
        let replicas =
            self.replica.as_ref().map_or(THREADS_MAX, |_| self.own_replica_connections());
        self.own_connections().min(replicas).min(terminals as usize).min(THREADS_MAX)
    }

    /// Connections of this host with the replica.
    #[must_use]
    pub fn own_replica_connections(&self) -> usize {
        self.replica.as_ref().map_or(0, |replica| self.share.of(replica.connections))
    }

    /// By kind: whether the replica answers it.
    #[must_use]
    pub fn routed(&self, kinds: &[String]) -> Vec<bool> {
        let Some(replica) = &self.replica else { return Vec::new() };
        kinds.iter().map(|kind| replica.kinds.contains(kind)).collect()
    }

    /// Refuses a replica of which nothing is asked, or what the workload does not know.
    ///
    /// # Errors
    ///
    /// Those.
    pub fn check_replica(&self, kinds: &[String]) -> Result<(), RunError> {
        let Some(replica) = &self.replica else { return Ok(()) };
        if replica.kinds.is_empty() {
            return Err(RunError::spec("replica.kinds is empty".into(), None));
        }
        match replica.kinds.iter().find(|kind| !kinds.contains(kind)) {
            None => Ok(()),
            Some(kind) => {
                let fact = format!("replica.kinds has {kind}, known are {}", kinds.join(", "));
                Err(RunError::spec(fact, None))
            }
        }
    }

    /// Connections of this host, for each part.
    #[must_use]
    pub fn own_connections(&self) -> usize {
        self.share.of(self.connections)
    }

    /// Threads to use.
    #[must_use]
    pub fn threads(&self) -> usize {
        let cores = available_parallelism().map_or(1, usize::from);
        let busy = self.own_connections().div_ceil(CONNECTIONS_A_THREAD);
        self.threads.unwrap_or_else(|| cores.min(busy).min(self.threads_max()))
    }

    /// The workload's seed, which also decides the pauses between attempts to connect.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.workload.get("seed").and_then(Value::as_u64).unwrap_or(0)
    }
}

fn within<T: Copy + PartialOrd + std::fmt::Display>(
    name: &str,
    value: T,
    low: T,
    high: T,
) -> Result<(), RunError> {
    if value >= low && value <= high {
        return Ok(());
    }
    Err(RunError::spec(format!("{name} is {value}, allowed are {low} to {high}"), None))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(change: &str) -> String {
        let mut spec = serde_json::json!({
            "version": 1, "workload": {"kind": "tpcc", "seed": 7}, "allow_debug": true,
            "connection": {"host": "/tmp", "port": 1, "user": "u", "database": "d",
                           "password": "secret", "options": {"work_mem": "4MB"}},
            "connections": 8, "terminals": 4,
        });
        if !change.is_empty() {
            let change: Value = serde_json::from_str(change).unwrap();
            for (key, value) in change.as_object().unwrap() {
                spec[key] = value.clone();
            }
        }
        spec.to_string()
    }

    #[test]
    fn defaults_are_those_of_the_documents() {
        let spec = Spec::parse(&json("")).unwrap();
        assert!((spec.window_s - 60.0).abs() < 1e-9 && spec.retries_max == 10);
        let four = Spec::parse(&json(r#"{"connections": 4}"#)).unwrap();
        assert_eq!(four.threads(), 1, "four connections keep one thread busy at most");
        assert_eq!(spec.seed(), 7);
        assert!(!format!("{spec:?}").contains("secret"));
    }

    #[test]
    fn what_is_for_a_closed_loop_is_refused_with_an_open_one() {
        let open = r#""arrivals": {"kind": "open", "per_s": 50}"#;
        let think = r#""workload": {"kind": "tpcc", "think_multiplier": 1.0}"#;
        for (change, fact) in [
            (r#""requests_max": 3"#, "arrivals.kind is open, but requests_max is 3"),
            (r#""deferred_max": 3"#, "arrivals.kind is open, but deferred_max is 3"),
            (think, "arrivals.kind is open, but workload.think_multiplier is 1"),
        ] {
            let error = Spec::parse(&json(&format!("{{{open}, {change}}}"))).unwrap_err();
            assert!(error.fact.contains(fact) && error.hint.is_some(), "{}", error.fact);
        }
        let steps =
            r#""steps": [{"seconds": 30, "factor": 1}, {"seconds": 30, "from": 0, "to": 9}]"#;
        let spec = Spec::parse(&json(&format!("{{{open}, {steps}}}"))).unwrap();
        assert!((spec.steps[1].to - 9.0).abs() < 1e-12);
    }

    #[test]
    fn values_out_of_range_are_refused_with_both_limits() {
        let cases = [
            (r#"{"terminals": 0}"#, "terminals is 0, allowed are 1 to 10000000"),
            (r#"{"connections": 0}"#, "connections is 0"),
            (r#"{"threads": 5}"#, "threads is 5, allowed are 1 to 4"),
            (
                r#"{"connections": 9000, "terminals": 9000, "threads": 5000}"#,
                "threads is 5000, allowed are 1 to 4096",
            ),
            (r#"{"window_s": 0}"#, "window_s is 0, allowed are 0.001 to 604800"),
            (r#"{"warmup_s": -1}"#, "warmup_s is -1"),
            (r#"{"version": 2}"#, "version is 2"),
            (r#"{"windows": 3}"#, "unknown field `windows`"),
            (r#"{"requests_max": 0}"#, "requests_max is 0, allowed are 1 to"),
            (r#"{"arrivals": {"kind": "open"}}"#, "missing field `per_s`"),
            (r#"{"arrivals": {"kind": "open", "per_s": 0}}"#, "arrivals.per_s is 0"),
            (r#"{"arrivals": {"kind": "closed", "per_s": 1}}"#, "unknown field `per_s`"),
            (
                r#"{"arrivals": {"kind": "open", "per_s": 9, "waiting_max": 0}}"#,
                "arrivals.waiting_max is 0, allowed are 1 to 100000000",
            ),
            (r#"{"steps": [{"seconds": 60, "factor": 1.1}]}"#, "factor 1.1, allowed are 0 to 1"),
            (r#"{"steps": [{"seconds": 50, "factor": 1}]}"#, "50 s in all, window_s is 60"),
            (r#"{"steps": [{"seconds": 60, "from": 1}]}"#, "either factor, or from and to"),
            (r#"{"parts": [{"name": "a"}, {"name": "a", "database": "b"}]}"#, "\"a\" twice"),
            (r#"{"parts": [{"name": "a"}, {"name": "b"}]}"#, "parts a and b have the same"),
            (r#"{"parts": [{"name": "a", "schema": "b"}]}"#, "unknown field `schema`"),
            (
                r#"{"connections": 60000,
                    "parts": [{"name": "a"}, {"name": "b", "database": "b"}]}"#,
                "connections of all parts is 120000, allowed are 1 to 100000",
            ),
            (r#"{"connection": {"host": "h"}}"#, "missing field"),
        ];
        for (change, fact) in cases {
            let error = Spec::parse(&json(change)).unwrap_err();
            assert!(error.fact.contains(fact), "{}", error.fact);
        }
    }

    #[test]
    fn passwords_are_not_quoted() {
        let odd = r#"{"connection": {"host": "h", "port": 1, "user": "u", "database": "d",
                      "password": 8765309}}"#;
        let error = Spec::parse(&json(odd)).unwrap_err();
        assert!(!error.fact.contains("8765309"), "{}", error.fact);
    }
}
