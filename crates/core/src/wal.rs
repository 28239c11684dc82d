//! `Wal`: a range of WAL, read segment by segment.

use std::sync::{Mutex, MutexGuard};

use drive::error::RunError;
use pages::{
    Error,
    wal::{Reading, WalHead, WalSpec},
};
use pyo3::prelude::*;

use crate::error::{misuse, raise, unwritten};

/// Says what a range of WAL was made of; its files are opened by who calls.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Wal(Mutex<Reading>);

#[pymethods]
impl Wal {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let spec: WalSpec = serde_json::from_str(spec_json)
            .map_err(|e| raise(RunError::spec(format!("specification of the WAL: {e}"), None)))?;
        py.detach(|| Reading::start(&spec))
            .map(|reading| Self(Mutex::new(reading)))
            .map_err(refused)
    }

    fn segments(&self) -> PyResult<Vec<String>> {
        Ok(self.lock()?.segments().collect())
    }

    #[pyo3(signature = (name, handle, /))]
    fn read(&self, py: Python<'_>, name: String, handle: u32) -> PyResult<String> {
        py.detach(|| {
            let part = self.lock()?.read(&WalHead { name, handle }).map_err(refused)?;
            serde_json::to_string(&part).map_err(|e| unwritten(&e))
        })
    }

    fn named(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| serde_json::to_string(&self.lock()?.named()).map_err(|e| unwritten(&e)))
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let summary = self.lock()?.finish().map_err(refused)?;
            serde_json::to_string(&summary).map_err(|e| unwritten(&e))
        })
    }
}

impl Wal {
    fn lock(&self) -> PyResult<MutexGuard<'_, Reading>> {
        self.0.lock().map_err(|_| misuse("wal panicked in another call".to_owned()))
    }
}

fn refused(error: Error) -> PyErr {
    raise(RunError::spec(error.fact, error.hint.as_deref()))
}
