//! `Redo`: which blocks the redo of a crashed cluster needs whole. `PageJudge`: pages for them.

use std::sync::{Mutex, MutexGuard};

use drive::error::RunError;
use pages::{
    Error,
    repair::{PagesAt, RepairSpec, Wanted, changes, differing, unsound},
    wal::{Redo as Reading, RedoSpec, Step, WalHead},
};
use pyo3::{prelude::*, pybacked::PyBackedBytes};

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

/// Pages that follow each other: the first one within its fork, bytes into the file, how many.
type Place = (u32, u64, u32);
/// Pages that differ: the first one, their bytes and those that take their place, LSNs of these.
type Changed = (usize, Vec<u8>, Vec<u8>, Vec<Option<String>>);

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

    #[pyo3(signature = (path, handle, places, sources, /))]
    fn changes(
        &self,
        py: Python<'_>,
        path: &str,
        handle: u32,
        places: Vec<Place>,
        sources: Vec<PyBackedBytes>,
    ) -> PyResult<Vec<Option<Vec<Changed>>>> {
        py.detach(|| {
            let file = WalHead { name: path.to_owned(), handle }.open().map_err(refused)?;
            let of_one = |(place, source): (Place, PyBackedBytes)| {
                let (first_block, file_at, blocks) = place;
                let wanted = Wanted { first_block, file_at, blocks, source: &source };
                let found = changes(&self.0, path, &file, &wanted).map_err(refused)?;
                Ok(found.map(|all| {
                    all.into_iter().map(|one| (one.first, one.old, one.new, one.lsns)).collect()
                }))
            };
            places.into_iter().zip(sources).map(of_one).collect()
        })
    }

    #[pyo3(signature = (path, first_block, source, /))]
    fn unsound(&self, path: &str, first_block: u32, source: &[u8]) -> PyResult<Vec<u32>> {
        unsound(&self.0, PagesAt { path, first_block }, source).map_err(refused)
    }

    #[pyo3(signature = (old, new, /))]
    fn differing(&self, old: &[u8], new: &[u8]) -> Vec<(usize, usize)> {
        differing(self.0.block_bytes as usize, old, new)
    }
}

fn wrong(error: &serde_json::Error) -> PyErr {
    raise(RunError::spec(format!("specification of the repair: {error}"), None))
}

fn refused(error: Error) -> PyErr {
    raise(RunError::spec(error.fact, error.hint.as_deref()))
}
