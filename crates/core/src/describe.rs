//! `describe`: what a workload is, without a server.

use drive::error::RunError;
use pyo3::prelude::*;
use serde_json::Value;
use workload::catalogue::{self, Described};

use crate::error::{raise, unwritten};

/// What a workload is (`Described`), as JSON.
#[pyfunction]
#[pyo3(signature = (workload_json, /))]
pub(crate) fn describe(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    // Counting the order lines of many warehouses takes its time.
    let described = py.detach(|| described(workload_json)).map_err(raise)?;
    serde_json::to_string(&described).map_err(|e| unwritten(&e))
}

fn described(workload_json: &str) -> Result<Described, RunError> {
    let spec: Value = serde_json::from_str(workload_json)
        .map_err(|e| RunError::spec(format!("specification of the workload: {e}"), None))?;
    catalogue::describe(&spec).map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))
}
