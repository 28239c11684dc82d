//! What `Drive`, `Load` and `Export` share: a spec that is started once, asked for progress,
//! stopped, and waited for with an eye on Ctrl-C.

use std::{
    sync::{Mutex, MutexGuard},
    time::Duration,
};

use drive::error::RunError;
use pyo3::prelude::*;
use serde::Serialize;

use crate::error::{misuse, raise, unwritten};

/// How often a waiting call looks for Ctrl-C.
const SIGNALS_EVERY: Duration = Duration::from_millis(100);

/// Work in threads of its own.
pub(crate) trait Work: Sized + Send {
    /// In errors, e.g. `run`.
    const NAME: &'static str;
    /// What it is started with.
    type Spec: Send;
    /// Written as JSON by `poll`.
    type Progress: Serialize;
    /// Written as JSON by `result`.
    type Report: Serialize + Send;

    /// Reads a spec.
    fn parse(json: &str) -> Result<Self::Spec, RunError>;
    /// Begins.
    fn start(spec: Self::Spec) -> Result<Self, RunError>;
    /// How far it is.
    fn progress(&self) -> Self::Progress;
    /// Asks it to end.
    fn stop(&self);
    /// Waits a little; `None` while it goes on.
    fn wait(&self, at_most: Duration) -> Option<Result<Self::Report, RunError>>;
}

/// A piece of work from its spec to its result.
pub(crate) struct Job<W: Work>(Mutex<State<W>>);

enum State<W: Work> {
    New(Box<W::Spec>),
    Started(W),
    /// The result was returned, or the start failed.
    Over,
}

impl<W: Work> Job<W> {
    pub(crate) fn new(spec_json: &str) -> PyResult<Self> {
        let spec = W::parse(spec_json).map_err(raise)?;
        Ok(Self(Mutex::new(State::New(Box::new(spec)))))
    }

    pub(crate) fn start(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| {
            let mut state = self.lock()?;
            match std::mem::replace(&mut *state, State::Over) {
                State::New(spec) => {
                    *state = State::Started(W::start(*spec).map_err(raise)?);
                    Ok(())
                }
                other => {
                    *state = other;
                    Err(Self::misused("was started already"))
                }
            }
        })
    }

    pub(crate) fn poll(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            let progress = self.started(W::progress)?;
            serde_json::to_string(&progress).map_err(|e| unwritten(&e))
        })
    }

    pub(crate) fn tell(&self, py: Python<'_>, what: impl FnOnce(&W) + Send) -> PyResult<()> {
        py.detach(|| self.started(what))
    }

    pub(crate) fn stop(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.started(W::stop))
    }

    pub(crate) fn result(&self, py: Python<'_>) -> PyResult<String> {
        loop {
            let waited = py.detach(|| self.started(|work| work.wait(SIGNALS_EVERY)))?;
            if let Some(result) = waited {
                py.detach(|| self.lock().map(|mut state| *state = State::Over))?;
                let result = result.map_err(raise)?;
                return serde_json::to_string(&result).map_err(|e| unwritten(&e));
            }
            py.check_signals()?;
        }
    }

    fn lock(&self) -> PyResult<MutexGuard<'_, State<W>>> {
        self.0.lock().map_err(|_| Self::misused("panicked in another call"))
    }

    fn started<T>(&self, ask: impl FnOnce(&W) -> T) -> PyResult<T> {
        match &*self.lock()? {
            State::Started(work) => Ok(ask(work)),
            State::New(_) => Err(Self::misused("was not started")),
            State::Over => Err(Self::misused("is over")),
        }
    }

    fn misused(fact: &str) -> PyErr {
        misuse(format!("{} {fact}", W::NAME))
    }
}
