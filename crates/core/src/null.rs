//! `NullServer`: plausible answers without a database.

use std::sync::{Arc, Mutex, MutexGuard};

use drive::error::RunError;
use pyo3::prelude::*;
use sim::null::{Known, NullError, NullServer as Serving, NullSpec, Respond};
use workload::{answers::Answers, plausible::Bound};

use crate::error::{misuse, raise, unwritten};

/// Answers a workload's statements at once, with plausible rows and without a database.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct NullServer {
    spec: NullSpec,
    serving: Mutex<Option<Serving>>,
}

#[pymethods]
impl NullServer {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(spec_json: &str) -> PyResult<Self> {
        let spec = NullSpec::parse(spec_json).map_err(refused)?;
        Ok(Self { spec, serving: Mutex::new(None) })
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut serving = self.lock()?;
            if serving.is_some() {
                return Err(misuse("null server was started already".to_owned()));
            }
            let known = known(&self.spec)?;
            *serving = Some(Serving::start(&self.spec, &known).map_err(refused)?);
            Ok(())
        })
    }

    fn poll(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let serving = self.lock()?;
            let server =
                serving.as_ref().ok_or_else(|| misuse("null server is not running".to_owned()))?;
            serde_json::to_string(&server.status()).map_err(|e| unwritten(&e))
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock().map(|mut serving| drop(serving.take())))
    }
}

impl NullServer {
    fn lock(&self) -> PyResult<MutexGuard<'_, Option<Serving>>> {
        self.serving.lock().map_err(|_| misuse("null server panicked in another call".to_owned()))
    }
}

/// The answers of the workload, as the server asks for them.
fn known(spec: &NullSpec) -> PyResult<Known> {
    let answers = Answers::of_spec(&spec.workload)
        .map_err(|e| raise(RunError::spec(e.fact, e.hint.as_deref())))?;
    Ok(Known::new(move |sql| {
        let plausible = answers.find(sql)?;
        let respond: Respond = Arc::new(move |params, out| plausible.answer(Bound(params), out));
        Some(respond)
    }))
}

fn refused(error: NullError) -> PyErr {
    raise(if error.is_spec {
        RunError::spec(error.fact, error.hint.as_deref())
    } else {
        RunError::internal(error.fact)
    })
}
