//! Errors of bytes that are not what they should be: a fact with what was found and what was
//! expected, then a hint where there is something to do.

use std::{error, fmt};

/// Bytes that cannot be read as what they are given for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// In lower case with both values, without full stop.
    pub fact: String,
    /// A sentence, where there is something to do.
    pub hint: Option<String>,
}

impl Error {
    pub(crate) fn new(fact: impl Into<String>) -> Self {
        Self { fact: fact.into(), hint: None }
    }

    pub(crate) fn hinted(fact: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { fact: fact.into(), hint: Some(hint.into()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fact)
    }
}

impl error::Error for Error {}
