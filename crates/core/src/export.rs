//! `Export`: writes a workload's rows into files.

use std::time::Duration;

use drive::error::RunError;
use load::export::{Export as Exporting, ExportProgress, ExportReport, ExportSpec};
use pyo3::prelude::*;

use crate::job::{Job, Work};

impl Work for Exporting {
    const NAME: &'static str = "export";
    type Spec = ExportSpec;
    type Progress = ExportProgress;
    type Report = ExportReport;

    fn parse(json: &str) -> Result<Self::Spec, RunError> {
        ExportSpec::parse(json)
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

/// Writes a workload's initial rows into CSV files.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Export(Job<Exporting>);

#[pymethods]
impl Export {
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
