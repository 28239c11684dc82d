//! The contract with Python: what crosses, as JSON Schema, and the version of all of it together.
//! Python holds its records against these schemas in a test, and reads bounds and defaults here.

use disk::{
    fault::FaultSpec,
    make::{Made, MakeSpec, RecordSpan},
    preloaded::{CloseSpec, Stocked},
    recording::{RecordSpec, Recorded},
};
use drive::{progress::Progress, result::RunResult, spec::Spec};
use load::{
    LoadEstimate, LoadProgress, LoadReport, LoadSpec,
    export::{ExportProgress, ExportReport, ExportSpec},
};
use pages::{
    repair::RepairSpec,
    wal::{RedoBegin, RedoNeeds, RedoSpec, WalNamed, WalPart, WalSpec, WalSummary},
};
use pyo3::{exceptions::PyKeyError, prelude::*};
use schemars::{JsonSchema, Schema, generate::SchemaSettings};
use sim::null::{NullSpec, NullStatus};
use workload::{
    catalogue::Described, mix::MixSpec, pgbench::PgbenchSpec, script::ScriptSpec, tpcc::TpccSpec,
};

use crate::error::unwritten;

/// Raised whenever a shape changes that crosses.
const VERSION: u32 = 17;

/// Version of everything that crosses.
#[pyfunction]
pub(crate) fn contract_version() -> u32 {
    VERSION
}

/// Makes a schema.
type Shape = fn() -> Schema;
/// What crosses, by name: what is read here, then what is written.
const SHAPES: [(&str, Shape); 33] = [
    ("DriveSpec", read::<Spec>),
    ("LoadSpec", read::<LoadSpec>),
    ("ExportSpec", read::<ExportSpec>),
    ("NullSpec", read::<NullSpec>),
    ("TpccSpec", read::<TpccSpec>),
    ("PgbenchSpec", read::<PgbenchSpec>),
    ("MixSpec", read::<MixSpec>),
    ("ScriptSpec", read::<ScriptSpec>),
    ("WalSpec", read::<WalSpec>),
    ("RedoSpec", read::<RedoSpec>),
    ("RepairSpec", read::<RepairSpec>),
    ("RecordSpec", read::<RecordSpec>),
    ("MakeSpec", read::<MakeSpec>),
    ("FaultSpec", read::<FaultSpec>),
    ("CloseSpec", read::<CloseSpec>),
    ("DriveProgress", written::<Progress>),
    ("RunResult", written::<RunResult>),
    ("LoadProgress", written::<LoadProgress>),
    ("LoadReport", written::<LoadReport>),
    ("LoadEstimate", written::<LoadEstimate>),
    ("ExportProgress", written::<ExportProgress>),
    ("ExportReport", written::<ExportReport>),
    ("NullStatus", written::<NullStatus>),
    ("WalPart", written::<WalPart>),
    ("WalNamed", written::<WalNamed>),
    ("WalSummary", written::<WalSummary>),
    ("RedoBegin", written::<RedoBegin>),
    ("RedoNeeds", written::<RedoNeeds>),
    ("Described", written::<Described>),
    ("Recorded", written::<Recorded>),
    ("RecordSpan", written::<RecordSpan>),
    ("Made", written::<Made>),
    ("Stocked", written::<Stocked>),
];

/// Names of everything that crosses.
#[pyfunction]
pub(crate) fn shapes() -> Vec<&'static str> {
    SHAPES.iter().map(|(name, _)| *name).collect()
}

/// JSON Schema of something that crosses, as JSON.
#[pyfunction]
#[pyo3(signature = (name, /))]
pub(crate) fn schema(name: &str) -> PyResult<String> {
    let (_, shape) = SHAPES
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| PyKeyError::new_err(name.to_owned()))?;
    serde_json::to_string(&shape()).map_err(|e| unwritten(&e))
}

fn read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>()
}

fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}
