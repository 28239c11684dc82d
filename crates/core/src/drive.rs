//! `Drive`: one driven window against a server.

use std::time::Duration;

use drive::{error::RunError, progress::Progress, result::RunResult, run::Run, spec::Spec};
use pyo3::prelude::*;

use crate::job::{Job, Work};

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

    fn open(&self, py: Python<'_>) -> PyResult<()> {
        self.0.tell(py, Run::open)
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        self.0.stop(py)
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        self.0.result(py)
    }
}

/// Whether the module was built with optimisation.
#[pyfunction]
pub(crate) fn is_release() -> bool {
    !cfg!(debug_assertions)
}
