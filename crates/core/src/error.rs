//! One exception: kind, fact, hint.

use drive::error::RunError;
use pyo3::{PyErr, create_exception, exceptions::PyException};
use wire::without_numbers;

create_exception!(
    _core,
    CoreError,
    PyException,
    "A failure of the core. `args` are (kind, fact, hint)."
);

/// A run's error as Python's.
pub(crate) fn raise(error: RunError) -> PyErr {
    CoreError::new_err((error.kind.name(), without_numbers(&error.fact), error.hint))
}

/// A misuse of a class, e.g. a result asked for before the start.
pub(crate) fn misuse(fact: String) -> PyErr {
    raise(RunError::spec(fact, None))
}

/// JSON that cannot be written: a bug.
pub(crate) fn unwritten(error: &serde_json::Error) -> PyErr {
    raise(RunError::internal(format!("write JSON: {error}")))
}
