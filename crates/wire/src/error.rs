//! Errors of a session: opaque, with questions. The text states a fact; the server's own hint is
//! apart.

use std::{borrow::Cow, error, fmt, io};

/// What went wrong on a session.
#[derive(Debug)]
pub struct Error(Box<Inner>);

#[derive(Debug)]
enum Inner {
    Server {
        severity: String,
        sqlstate: String,
        message: String,
        detail: Option<String>,
        hint: Option<String>,
    },
    Io {
        doing: Cow<'static, str>,
        source: io::Error,
    },
    Protocol(String),
    Column(usize),
}

impl Error {
    /// An error that the server reported.
    #[must_use]
    pub fn server(
        severity: String,
        sqlstate: String,
        message: String,
        detail: Option<String>,
        hint: Option<String>,
    ) -> Self {
        Self(Box::new(Inner::Server { severity, sqlstate, message, detail, hint }))
    }

    /// The operating system refused; `doing` is in the present tense, e.g. "connect to …".
    #[must_use]
    pub fn io(doing: impl Into<Cow<'static, str>>, source: io::Error) -> Self {
        Self(Box::new(Inner::Io { doing: doing.into(), source }))
    }

    /// The other side broke the protocol, or asked for what this session cannot do.
    #[must_use]
    pub fn protocol(fact: impl Into<String>) -> Self {
        Self(Box::new(Inner::Protocol(fact.into())))
    }

    /// A column is missing, NULL, or of another type.
    #[must_use]
    pub fn column(column: usize) -> Self {
        Self(Box::new(Inner::Column(column)))
    }

    /// The same error, its message preceded by what was being done, e.g. "prepare `stock_get`".
    #[must_use]
    pub fn while_doing(mut self, what: &str) -> Self {
        match &mut *self.0 {
            Inner::Server { message, .. } => *message = format!("{what}: {message}"),
            Inner::Io { doing, .. } => *doing = Cow::Owned(format!("{what}: {doing}")),
            Inner::Protocol(fact) => *fact = format!("{what}: {fact}"),
            Inner::Column(_) => {}
        }
        self
    }

    /// The server's SQLSTATE, if the server reported the error.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match &*self.0 {
            Inner::Server { sqlstate, .. } => Some(sqlstate),
            _ => None,
        }
    }

    /// Whether the same transaction may succeed when tried again (40001, 40P01).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        matches!(self.sqlstate(), Some("40001" | "40P01"))
    }

    /// Whether the connection is gone: the operating system said so, or the server ended it
    /// (FATAL, PANIC, 57P01, 57P02, 57P03).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &*self.0 {
            Inner::Io { .. } => true,
            Inner::Server { severity, sqlstate, .. } => {
                severity == "FATAL" || severity == "PANIC" || sqlstate.starts_with("57P0")
            }
            _ => false,
        }
    }

    /// The server's hint.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match &*self.0 {
            Inner::Server { hint, .. } => hint.as_deref(),
            _ => None,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.0 {
            Inner::Server { severity, sqlstate, message, detail, .. } => {
                write!(f, "{severity} {sqlstate}: {message}")?;
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
                Ok(())
            }
            Inner::Io { doing, source } => write!(f, "{doing}: {source}"),
            Inner::Protocol(fact) => f.write_str(fact),
            Inner::Column(column) => {
                write!(f, "column {column} is missing, null or of another type")
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &*self.0 {
            Inner::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
