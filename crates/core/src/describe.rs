//! `describe`: what a workload is, without a server.

use drive::error::RunError;
use pyo3::prelude::*;
use serde_json::Value;
use workload::catalogue;

use crate::error::raise;

/// Name, version, kinds, mix, statements, tables, indexes, conditions, load checks, deviations and
/// size of a workload, as JSON.
#[pyfunction]
#[pyo3(signature = (workload_json, /))]
pub(crate) fn describe(py: Python<'_>, workload_json: &str) -> PyResult<String> {
    // Counting the order lines of many warehouses takes its time.
    py.detach(|| described(workload_json)).map_err(raise)
}

fn described(workload_json: &str) -> Result<String, RunError> {
    let spec: Value = serde_json::from_str(workload_json)
        .map_err(|e| RunError::spec(format!("specification of the workload: {e}"), None))?;
    let described =
        catalogue::describe(&spec).map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))?;
    Ok(described.to_string())
}
