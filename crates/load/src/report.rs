//! What a load did, as JSON.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use workload::{catalogue::WorkloadSpec, tpcc::spec::LoadConstants};

use super::progress::Phase;

/// What a load did.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadReport {
    /// Of this format: 1.
    pub version: u32,
    /// The workload's specification, resolved.
    #[schemars(with = "WorkloadSpec")]
    pub workload: Value,
    /// As the server calls itself.
    pub server_version: String,
    /// The time that loaded rows carry, seconds since 1970.
    pub loaded_at_unix_s: i64,
    /// From connecting to the record of the load.
    pub seconds: f64,
    /// Its parts; they overlap.
    pub phases: Vec<PhaseReport>,
    /// Rows and bytes sent, by table.
    pub tables: Vec<TableReport>,
    /// Rows sent.
    pub rows: u64,
    /// Bytes of COPY data sent.
    pub bytes: u64,
    /// Steps of the load that an earlier, interrupted run had done.
    pub steps_done_before: usize,
    /// Units (warehouses, branches) that were there before and stayed.
    pub units_before: u32,
    /// Tables with their indexes, as the server says; 0 of a part of a load.
    pub disk_bytes: u64,
    /// The constants that a later run must respect.
    #[schemars(with = "Option<LoadConstants>")]
    pub c_load: Value,
    /// CPU of this process, user and system.
    pub client_cpu_seconds: f64,
    /// What was left open by the specification and decided here.
    pub choices: Vec<Choice>,
}

/// A part of the load.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PhaseReport {
    /// Which.
    pub name: Phase,
    /// From the start of its first step to the end of its last.
    pub seconds: f64,
    /// Time of all sessions together.
    pub session_seconds: f64,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TableReport {
    /// Name.
    pub name: String,
    /// Rows sent, as the server counted them.
    pub rows: u64,
    /// Bytes of COPY data sent.
    pub bytes: u64,
}

/// A decision and its reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Choice {
    /// What was open.
    pub name: &'static str,
    /// What was taken.
    pub value: String,
    /// Why.
    pub why: String,
}
