//! Where a session goes and as whom.

use std::{fmt, time::Duration};

use crate::Error;

/// A password that no log, report or error shows.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    /// Takes the password into keeping.
    #[must_use]
    pub fn new(password: impl Into<String>) -> Self {
        Self(password.into())
    }

    pub(crate) fn expose(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password(..)")
    }
}

/// What the user asks of the transport, in libpq's words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SslMode {
    /// Plain text.
    #[default]
    Disable,
    /// TLS if the server has it: plain text as long as this session has no TLS.
    Prefer,
    /// TLS or nothing: refused as long as this session has no TLS.
    Require,
}

/// Where a session goes and as whom.
#[derive(Clone, Debug)]
pub struct Target {
    /// Folder of the Unix socket if it begins with `/`, otherwise a host name or an address.
    pub host: String,
    /// Port, also part of the Unix socket's name.
    pub port: u16,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Password, if the server asks for one.
    pub password: Option<Password>,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// Server settings sent with the start of the session.
    pub options: Vec<(String, String)>,
    /// TLS or not.
    pub ssl_mode: SslMode,
    /// Time from the first packet until every statement is prepared.
    pub connect_timeout: Duration,
}

impl Target {
    /// A target without password and options, with a connect timeout of ten seconds.
    #[must_use]
    pub fn new(host: &str, port: u16, user: &str, database: &str) -> Self {
        Self {
            host: host.to_owned(),
            port,
            user: user.to_owned(),
            database: database.to_owned(),
            password: None,
            application_name: "pgdyno".to_owned(),
            options: Vec::new(),
            ssl_mode: SslMode::Disable,
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Path of the Unix socket, `None` for TCP.
    #[must_use]
    pub fn socket_path(&self) -> Option<String> {
        self.host.starts_with('/').then(|| format!("{}/.s.PGSQL.{}", self.host, self.port))
    }

    /// Checks what would otherwise be sent in another meaning.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.ssl_mode == SslMode::Require {
            return Err(Error::protocol(
                "sslmode is require, sessions of this version have no TLS",
            ));
        }
        for (name, value) in &self.options {
            if matches!(name.as_str(), "" | "user" | "database" | "replication" | "options") {
                return Err(Error::protocol(format!("option {name:?} is not a server setting")));
            }
            if name.contains('\0') || value.contains('\0') {
                return Err(Error::protocol(format!("option {name:?} contains a zero byte")));
            }
        }
        Ok(())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.socket_path() {
            Some(path) => f.write_str(&path),
            None => write!(f, "{}:{}", self.host, self.port),
        }
    }
}
