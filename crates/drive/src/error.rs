//! Errors of a run as its caller sees them: a kind, a fact, a hint.

use std::fmt;

use thiserror::Error;

/// What kind of failure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// What was asked for cannot be done; nothing was touched.
    Spec,
    /// The server did not do its part.
    Target,
    /// The driver itself failed.
    Drive,
}

impl ErrorKind {
    /// As the Python side knows it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spec => "spec",
            Self::Target => "target",
            Self::Drive => "drive",
        }
    }
}

/// A run that has no result.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{fact}")]
pub struct RunError {
    /// Whose failure it is.
    pub kind: ErrorKind,
    /// In lower case with both values, without full stop.
    pub fact: String,
    /// A sentence, where there is something to do.
    pub hint: Option<String>,
}

impl RunError {
    /// The specification is refused.
    #[must_use]
    pub fn spec(fact: String, hint: Option<&str>) -> Self {
        Self { kind: ErrorKind::Spec, fact, hint: hint.map(str::to_owned) }
    }

    /// The server failed; its own hint is kept.
    #[must_use]
    pub fn target(what: &dyn fmt::Display, error: &wire::Error) -> Self {
        let hint = error.hint().map(str::to_owned);
        Self { kind: ErrorKind::Target, fact: format!("{what}: {error}"), hint }
    }

    /// No session could be opened; where the server let us in, it refused a statement of ours.
    #[must_use]
    pub fn opening(target: &dyn fmt::Display, error: &wire::Error) -> Self {
        let told = error.to_string();
        let fact = if told.starts_with("connect to ") {
            told // by who tried
        } else if error.sqlstate().is_some() && !error.is_closed() {
            format!("{target}: {told}")
        } else {
            format!("connect to {target}: {told}")
        };
        Self { kind: ErrorKind::Target, fact, hint: error.hint().map(str::to_owned) }
    }

    /// The driver failed.
    #[must_use]
    pub fn internal(fact: String) -> Self {
        Self { kind: ErrorKind::Drive, fact, hint: None }
    }
}
