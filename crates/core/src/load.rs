//! `Load`: fills a database; `estimate_load`: what that would need.

use std::time::Duration;

use drive::error::RunError;
use load::{Load as Loading, LoadProgress, LoadReport, LoadSpec, estimate};
use pyo3::prelude::*;

use crate::{
    error::{raise, unwritten},
    job::{Job, Work},
};

/// What a load would need: space on disk, rows, time. Nothing is changed.
#[pyfunction]
#[pyo3(signature = (spec_json, /))]
pub(crate) fn estimate_load(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let estimated = py.detach(|| LoadSpec::parse(spec_json).and_then(estimate)).map_err(raise)?;
    serde_json::to_string(&estimated).map_err(|e| unwritten(&e))
}

impl Work for Loading {
    const NAME: &'static str = "load";
    type Spec = LoadSpec;
    type Progress = LoadProgress;
    type Report = LoadReport;

    fn parse(json: &str) -> Result<Self::Spec, RunError> {
        LoadSpec::parse(json)
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

/// Fills a database: tables, COPY from several connections, indexes, vacuum.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Load(Job<Loading>);

#[pymethods]
impl Load {
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

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.0.stop(py)
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.0.result(py)
    }
}
