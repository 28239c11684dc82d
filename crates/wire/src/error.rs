//! Errors of a session: opaque, with questions. The text states a fact; the server's own hint is
//! apart.

use std::{borrow::Cow, error, fmt, io};

use crate::tls_hint::hint_of;

/// What went wrong on a session.
#[derive(Debug)]
pub struct Error {
    inner: Box<Inner>,
    /// A part of the work is committed.
    partly: bool,
}

#[derive(Debug)]
enum Inner {
    Server {
        severity: String,
        sqlstate: String,
        message: String,
        detail: Option<String>,
        hint: Option<String>,
        repeatable: bool,
    },
    Io {
        doing: Cow<'static, str>,
        source: io::Error,
    },
    Protocol(String),
    Refused {
        fact: String,
        hint: String,
    },
    Several(Vec<Error>),
    Column(usize),
}

const NO_RIGHT: &str = "GRANT the role that right, or connect as another role.";
const TOO_MANY: &str = "Ask for fewer connections, or raise max_connections of the server.";
const NAMES_LOST: &str = "A pooler that gives each transaction another server session loses the \
                          names of statements: send them unnamed (prepare = unnamed), or use \
                          PgBouncer 1.21 or newer with max_prepared_statements.";
const SETTINGS_REFUSED: &str = "A pooler passes on no settings: set them on the database or the \
                                role, or name them in PgBouncer's ignore_startup_parameters.";

impl Error {
    fn of(inner: Inner) -> Self {
        Self { inner: Box::new(inner), partly: false }
    }

    /// An error that the server reported.
    #[must_use]
    pub fn server(
        severity: String,
        sqlstate: String,
        message: String,
        detail: Option<String>,
        hint: Option<String>,
    ) -> Self {
        let repeatable = matches!(sqlstate.as_str(), "40001" | "40P01");
        Self::of(Inner::Server { severity, sqlstate, message, detail, hint, repeatable })
    }

    /// The operating system refused; `doing` is in the present tense, e.g. "connect to …".
    #[must_use]
    pub fn io(doing: impl Into<Cow<'static, str>>, source: io::Error) -> Self {
        Self::of(Inner::Io { doing: doing.into(), source })
    }

    /// The other side broke the protocol, or asked for what this session cannot do.
    #[must_use]
    pub fn protocol(fact: impl Into<String>) -> Self {
        Self::of(Inner::Protocol(fact.into()))
    }

    /// What was asked for cannot be had; the hint says what to do.
    #[must_use]
    pub fn refused(fact: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::of(Inner::Refused { fact: fact.into(), hint: hint.into() })
    }

    /// Nothing that was tried worked.
    #[must_use]
    pub fn several(mut errors: Vec<Error>) -> Self {
        match errors.pop() {
            Some(only) if errors.is_empty() => only,
            Some(last) => {
                errors.push(last);
                Self::of(Inner::Several(errors))
            }
            None => Self::protocol("nothing was tried"),
        }
    }

    /// A column is missing, NULL, or of another type.
    #[must_use]
    pub fn column(column: usize) -> Self {
        Self::of(Inner::Column(column))
    }

    /// The same error, its message preceded by what was being done, e.g. "prepare `stock_get`".
    #[must_use]
    pub fn while_doing(mut self, what: &str) -> Self {
        match &mut *self.inner {
            Inner::Server { message, .. } => *message = format!("{what}: {message}"),
            Inner::Io { doing, .. } => *doing = Cow::Owned(format!("{what}: {doing}")),
            Inner::Protocol(fact) | Inner::Refused { fact, .. } => {
                *fact = format!("{what}: {fact}");
            }
            Inner::Several(_) | Inner::Column(_) => {}
        }
        self
    }

    /// The server's SQLSTATE, if a server reported the error. Of several servers: that of the first
    /// that is only not ready yet, otherwise of the last that said anything.
    #[must_use]
    pub fn sqlstate(&self) -> Option<&str> {
        match &*self.inner {
            Inner::Server { sqlstate, .. } => Some(sqlstate),
            Inner::Several(errors) => {
                let states = || errors.iter().filter_map(Self::sqlstate);
                states().find(|state| *state == "57P03").or_else(|| states().next_back())
            }
            _ => None,
        }
    }

    /// Whether the operating system broke off, before or while the server spoke.
    pub(crate) fn is_broken(&self) -> bool {
        match &*self.inner {
            Inner::Io { .. } => true,
            Inner::Several(errors) => errors.iter().all(Self::is_broken),
            _ => false,
        }
    }

    /// Whether the same transaction may succeed when tried again (40001, 40P01).
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        !self.partly && matches!(&*self.inner, Inner::Server { repeatable: true, .. })
    }

    /// The same error, of work a part of which is committed: it must not be tried again as a whole.
    #[must_use]
    pub fn partly_committed(mut self) -> Self {
        self.partly = true;
        self
    }

    /// Whether a part of the work is committed.
    #[must_use]
    pub fn is_partly_committed(&self) -> bool {
        self.partly
    }

    /// Whether the connection is gone: the operating system said so, or the server ended it
    /// (FATAL, PANIC, 57P01, 57P02, 57P03).
    #[must_use]
    pub fn is_closed(&self) -> bool {
        match &*self.inner {
            Inner::Io { .. } => true,
            Inner::Server { severity, sqlstate, .. } => {
                severity == "FATAL" || severity == "PANIC" || sqlstate.starts_with("57P0")
            }
            Inner::Several(errors) => errors.iter().all(Self::is_closed),
            _ => false,
        }
    }

    /// The server's hint, or ours.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match &*self.inner {
            Inner::Server { hint: Some(hint), .. } | Inner::Refused { hint, .. } => Some(hint),
            Inner::Server { sqlstate, message, .. } => match sqlstate.as_str() {
                "42501" => Some(NO_RIGHT),
                "53300" => Some(TOO_MANY),
                "26000" | "42P05" => Some(NAMES_LOST),
                "08P01" if message.contains("startup parameter") => Some(SETTINGS_REFUSED),
                _ => None,
            },
            Inner::Io { source, .. } => hint_of(source),
            Inner::Several(errors) => errors.iter().find_map(Self::hint),
            _ => None,
        }
    }
}

/// A text without the ` (os error 2)` that Rust puts behind the operating system's own words.
#[must_use]
pub fn without_numbers(text: &str) -> String {
    let mut parts = text.split(" (os error ");
    let mut told = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        told.push_str(rest.strip_prefix(')').unwrap_or(rest));
    }
    told
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.inner {
            Inner::Server { severity, sqlstate, message, detail, .. } => {
                write!(f, "{severity} {sqlstate}: {message}")?;
                if let Some(detail) = detail {
                    write!(f, " ({detail})")?;
                }
                Ok(())
            }
            Inner::Io { doing, source } => {
                write!(f, "{doing}: {}", without_numbers(&source.to_string()))
            }
            Inner::Protocol(fact) | Inner::Refused { fact, .. } => f.write_str(fact),
            Inner::Several(errors) => {
                for (at, error) in errors.iter().enumerate() {
                    let then = if at > 0 { "; " } else { "" };
                    write!(f, "{then}{error}")?;
                }
                Ok(())
            }
            Inner::Column(column) => {
                write!(f, "column {column} is missing, null or of another type")
            }
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match &*self.inner {
            Inner::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
