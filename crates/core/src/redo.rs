//! `Redo`: which blocks the redo of a crashed cluster needs whole. `PageJudge`: pages for them.

use std::sync::{Mutex, MutexGuard};

use drive::error::RunError;
use pages::{
    Error,
    repair::{PagesAt, RepairSpec, repaired},
    wal::{Redo as Reading, RedoSpec, Step, WalHead},
};
use pyo3::prelude::*;

use crate::error::{misuse, raise, unwritten};

/// Says what redo of a crashed cluster needs; its files are opened by who calls.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Redo(Mutex<Reading>);

#[pymethods]
impl Redo {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(py: Python<'_>, spec_json: &str) -> PyResult<Self> {
        let spec: RedoSpec = serde_json::from_str(spec_json).map_err(|e| wrong(&e))?;
        py.detach(|| Reading::start(&spec))
            .map(|reading| Self(Mutex::new(reading)))
            .map_err(refused)
    }

    fn begin(&self) -> PyResult<String> {
        serde_json::to_string(self.lock()?.begin()).map_err(|e| unwritten(&e))
    }

    fn segments(&self) -> PyResult<Vec<String>> {
        Ok(self.lock()?.segments().collect())
    }

    #[pyo3(signature = (name, handle, /))]
    fn read(&self, py: Python<'_>, name: String, handle: u32) -> PyResult<bool> {
        py.detach(|| {
            let head = WalHead { name, handle };
            let file = head.open().map_err(refused)?;
            self.lock()?.read(&head.name, &file).map(|step| step == Step::More).map_err(refused)
        })
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let needs = self.lock()?.finish().map_err(refused)?;
            serde_json::to_string(&needs).map_err(|e| unwritten(&e))
        })
    }
}

impl Redo {
    fn lock(&self) -> PyResult<MutexGuard<'_, Reading>> {
        self.0.lock().map_err(|_| misuse("redo panicked in another call".to_owned()))
    }
}

/// Of pages that are judged while others run.
const LONG_BYTES: usize = 1 << 17;

/// Pages, what of them is unsound, and the LSN of each.
type Judged = (Vec<u8>, Vec<u32>, Vec<Option<String>>);

/// Judges pages of a copy, run after run.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct PageJudge(RepairSpec);

#[pymethods]
impl PageJudge {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(spec_json: &str) -> PyResult<Self> {
        serde_json::from_str(spec_json).map(Self).map_err(|e| wrong(&e))
    }

    #[pyo3(signature = (path, first_block, source, target, /))]
    fn judged(
        &self,
        py: Python<'_>,
        path: &str,
        first_block: u32,
        source: &[u8],
        target: &[u8],
    ) -> PyResult<Judged> {
        let at = PagesAt { path, first_block };
        // To let others run takes longer than to judge a page or two.
        let judge = || repaired(&self.0, at, source, target);
        let told = if source.len() < LONG_BYTES { judge() } else { py.detach(judge) };
        let told = told.map_err(refused)?;
        Ok((told.pages, told.unsound, told.lsns))
    }
}

fn wrong(error: &serde_json::Error) -> PyErr {
    raise(RunError::spec(format!("specification of the repair: {error}"), None))
}

fn refused(error: Error) -> PyErr {
    raise(RunError::spec(error.fact, error.hint.as_deref()))
}
