//! `Drive`: one driven window against a server.

use std::{sync::Mutex, time::Duration};

use drive::{run::Run, spec::Spec};
use pyo3::prelude::*;

use crate::error::{misuse, raise, unwritten};

/// How often a waiting call looks for Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// One driven window against a server.
#[pyclass(module = "pgdyno._core", frozen)]
pub(crate) struct Drive(Mutex<State>);

enum State {
    New(Box<Spec>),
    Started(Run),
    /// The result was returned, or the start failed.
    Over,
}

#[pymethods]
impl Drive {
    #[new]
    #[pyo3(signature = (spec_json, /))]
    fn new(spec_json: &str) -> PyResult<Self> {
        let spec = Spec::parse(spec_json).map_err(raise)?;
        Ok(Self(Mutex::new(State::New(Box::new(spec)))))
    }

    fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.lock()?;
            match std::mem::replace(&mut *state, State::Over) {
                State::New(spec) => {
                    *state = State::Started(Run::start(*spec).map_err(raise)?);
                    Ok(())
                }
                other => {
                    *state = other;
                    Err(misuse("run was started already"))
                }
            }
        })
    }

    fn poll(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let progress = self.started(|run| Ok(run.progress()))?;
            serde_json::to_string(&progress).map_err(|e| unwritten(&e))
        })
    }

    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            self.started(|run| {
                run.stop();
                Ok(())
            })
        })
    }

    fn result(&self, py: Python<'_>) -> PyResult<String> {
        loop {
            let waited = py.detach(|| self.started(|run| Ok(run.wait(SIGNALS_EVERY))))?;
            if let Some(result) = waited {
                *self.lock()? = State::Over;
                let result = result.map_err(raise)?;
                return serde_json::to_string(&result).map_err(|e| unwritten(&e));
            }
            py.check_signals()?;
        }
    }
}

impl Drive {
    fn lock(&self) -> PyResult<std::sync::MutexGuard<'_, State>> {
        self.0.lock().map_err(|_| misuse("run panicked in another call"))
    }

    fn started<T>(&self, ask: impl FnOnce(&Run) -> PyResult<T>) -> PyResult<T> {
        match &*self.lock()? {
            State::Started(run) => ask(run),
            State::New(_) => Err(misuse("run was not started")),
            State::Over => Err(misuse("run is over")),
        }
    }
}

/// Whether the module was built with optimisation.
#[pyfunction]
pub(crate) fn is_release() -> bool {
    !cfg!(debug_assertions)
}
