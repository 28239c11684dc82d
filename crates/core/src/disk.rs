//! `Recording`: a file system that records; `take_stock` and `close_record`: a record between whose
//! ends a preloaded library writes. `make_disk`: what a power cut leaves, of a record.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

use disk::fault::FaultSpec;
use disk::in_place::hand_back as back;
use disk::make::{MakeSpec, make, record_span as span_of};
use disk::preloaded::{CloseSpec, begin, close};
use disk::recording::{RecordSpec, Recording as Mounted};
use drive::error::RunError;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;

use crate::error::{misuse, raise, unwritten};

/// A file system that passes through to a folder and writes down what is asked of it.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Recording {
    spec: RecordSpec,
    mounted: Mutex<Option<Mounted>>,
}

#[pymethods]
impl Recording {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(spec_json: &str) -> PyResult<Self> {
        Ok(Self { spec: read(spec_json)?, mounted: Mutex::new(None) })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut mounted = self.lock()?;
            if mounted.is_some() {
                return Err(misuse("recording was started already".to_owned()));
            }
            *mounted = Some(Mounted::begin(&self.spec).map_err(failed)?);
            Ok(())
        })
    }

    #[pyo3(signature = (fault_json, /))]
    fn fail(&self, fault_json: &str) -> PyResult<()> {
        let fault: FaultSpec = read(fault_json)?;
        let mounted = self.lock()?;
        let mounted =
            mounted.as_ref().ok_or_else(|| misuse("recording was not started".to_owned()))?;
        mounted.fail(fault).map_err(failed)
    }

    fn cut(&self) -> PyResult<()> {
        let mounted = self.lock()?;
        let mounted =
            mounted.as_ref().ok_or_else(|| misuse("recording was not started".to_owned()))?;
        mounted.cut();
        Ok(())
    }

    fn stop(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let mounted = self.lock()?.take();
            let mounted = mounted.ok_or_else(|| misuse("recording was not started".to_owned()))?;
            serde_json::to_string(&mounted.end().map_err(failed)?).map_err(|e| unwritten(&e))
        })
    }
}

impl Recording {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Mounted>>> {
        self.mounted.lock().map_err(|_| misuse("recording panicked in another call".to_owned()))
    }
}

/// Begin a record that a preloaded library adds to.
#[pyfunction]
#[pyo3(signature = (spec_json, /))]
pub(crate) fn take_stock(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: RecordSpec = read(spec_json)?;
    let stocked = py.detach(|| begin(&spec)).map_err(failed)?;
    serde_json::to_string(&stocked).map_err(|e| unwritten(&e))
}

/// End such a record.
#[pyfunction]
#[pyo3(signature = (spec_json, /))]
pub(crate) fn close_record(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: CloseSpec = read(spec_json)?;
    let recorded = py.detach(|| close(&spec)).map_err(failed)?;
    serde_json::to_string(&recorded).map_err(|e| unwritten(&e))
}

/// Make a disk of a record.
#[pyfunction]
#[pyo3(signature = (spec_json, /))]
pub(crate) fn make_disk(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: MakeSpec = read(spec_json)?;
    let made = py.detach(|| make(&spec)).map_err(failed)?;
    serde_json::to_string(&made).map_err(|e| unwritten(&e))
}

/// Bring what was recorded itself to what such a disk is.
#[pyfunction]
#[pyo3(signature = (spec_json, /))]
pub(crate) fn hand_back(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    let spec: MakeSpec = read(spec_json)?;
    let made = py.detach(|| back(&spec)).map_err(failed)?;
    serde_json::to_string(&made).map_err(|e| unwritten(&e))
}

/// What time a record spans.
#[pyfunction]
#[pyo3(signature = (folder, record, /))]
pub(crate) fn record_span(py: Python<'_>, folder: &str, record: &str) -> PyResult<String> {
    let span = py.detach(|| span_of(Path::new(folder), record)).map_err(failed)?;
    serde_json::to_string(&span).map_err(|e| unwritten(&e))
}

fn read<T: DeserializeOwned>(spec_json: &str) -> PyResult<T> {
    serde_json::from_str(spec_json).map_err(|e| raise(RunError::spec(e.to_string(), None)))
}

fn failed(fact: String) -> PyErr {
    raise(RunError::internal(fact))
}
