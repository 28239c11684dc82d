//! `Load`: fills a database.

use std::{sync::Mutex, time::Duration};

use drive::load::{Load as Loading, LoadSpec};
use pyo3::prelude::*;

use crate::error::{misuse, raise, unwritten};

/// How often a waiting call looks for Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// Fills a database: tables, COPY from several connections, indexes, vacuum.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Load(Mutex<State>);

enum State {
    New(Box<LoadSpec>),
    Started(Loading),
    /// The result was returned, or the start failed.
    Over,
}

#[pymethods]
impl Load {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(spec_json: &str) -> PyResult<Self> {
        let spec = LoadSpec::parse(spec_json).map_err(raise)?;
        Ok(Self(Mutex::new(State::New(Box::new(spec)))))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.lock()?;
            match std::mem::replace(&mut *state, State::Over) {
                State::New(spec) => {
                    *state = State::Started(Loading::start(*spec).map_err(raise)?);
                    Ok(())
                }
                other => {
                    *state = other;
                    Err(misuse("load was started already"))
                }
            }
        })
    }

    fn poll(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let progress = self.started(|load| Ok(load.progress()))?;
            serde_json::to_string(&progress).map_err(|e| unwritten(&e))
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.started(|load| {
                load.stop();
                Ok(())
            })
        })
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        loop {
            let waited = py.detach(|| self.started(|load| Ok(load.wait(SIGNALS_EVERY))))?;
            if let Some(result) = waited {
                py.detach(|| self.lock().map(|mut state| *state = State::Over))?;
                let result = result.map_err(raise)?;
                return serde_json::to_string(&result).map_err(|e| unwritten(&e));
            }
            py.check_signals()?;
        }
    }
}

impl Load {
    fn lock(&self) -> PyResult<std::sync::MutexGuard<'_, State>> {
        self.0.lock().map_err(|_| misuse("load panicked in another call"))
    }

    fn started<T>(&self, ask: impl FnOnce(&Loading) -> PyResult<T>) -> PyResult<T> {
        match &*self.lock()? {
            State::Started(load) => ask(load),
            State::New(_) => Err(misuse("load was not started")),
            State::Over => Err(misuse("load is over")),
        }
    }
}
