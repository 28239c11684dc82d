//! `Drive`: one driven window against a server.

use std::time::Duration;

use drive::{
    error::RunError,
    progress::Progress,
    result::{RunResult, merge::merge},
    run::Run,
    shared::Instant,
    spec::Spec,
};
use pyo3::prelude::*;

use crate::{
    error::{raise, unwritten},
    job::{Job, Work},
};

impl Work for Run {
    const NAME: &'static str = "run";
    type Spec = Spec;
    type Progress = Progress;
    type Report = RunResult;

    fn parse(json: &str) -> Result<Self::Spec, RunError> {
        Spec::parse(json)
    }

    fn start(spec: Self::Spec) -> Result<Self, RunError> {
        Self::start(spec)
    }

    fn progress(&self) -> Self::Progress {
        self.progress()
    }

    fn stop(&self) {
        self.stop();
    }

    fn wait(&self, at_most: Duration) -> Option<Result<Self::Report, RunError>> {
        self.wait(at_most)
    }
}

/// One driven window against a server.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Drive(Job<Run>);

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(spec_json: &str) -> PyResult<Self> {
        Job::new(spec_json).map(Self)
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        self.0.start(py)
    }

    fn poll(&self, py: Python<'_>) -> PyResult<String> {
        self.0.poll(py)
    }

    #[pyo3(signature = (steady_ns, unix_ns, /))]
    fn begin(&self, py: Python<'_>, steady_ns: u64, unix_ns: u64) -> PyResult<()> {
        self.0.tell(py, |run| run.begin(Instant { steady_ns, unix_ns }))
    }

    #[pyo3(signature = (steady_ns=None, /))]
    fn open(&self, py: Python<'_>, steady_ns: Option<u64>) -> PyResult<()> {
        self.0.tell(py, |run| steady_ns.map_or_else(|| run.open(), |at_ns| run.open_at(at_ns)))
    }

    #[pyo3(signature = (steady_ns=None, /))]
    fn stop(&self, py: Python<'_>, steady_ns: Option<u64>) -> PyResult<()> {
        self.0.tell(py, |run| steady_ns.map_or_else(|| run.stop(), |at_ns| run.stop_at(at_ns)))
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.0.result(py)
    }
}

/// The results of hosts that drove parts of one load, as the result of the whole.
#[pyfunction]
#[pyo3(signature = (workload_json, results, /))]
#[allow(clippy::needless_pass_by_value, reason = "a Python list is copied into a Vec")]
pub(crate) fn merge_results(
    py: Python<'_>,
    workload_json: &str,
    results: Vec<String>,
) -> PyResult<String> {
    let workload = serde_json::from_str(workload_json)
        .map_err(|e| RunError::spec(format!("specification of the workload: {e}"), None));
    let merged = py.detach(|| merge(&workload?, &results)).map_err(raise)?;
    serde_json::to_string(&merged).map_err(|e| unwritten(&e))
}

/// Whether the module was built with optimisation.
#[pyfunction]
pub(crate) fn is_release() -> bool {
    !cfg!(debug_assertions)
}
