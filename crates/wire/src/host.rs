//! A server that may have the database, in libpq's words.

use std::fmt;

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

/// One of the servers that a session may go to.
#[derive(Clone, Debug)]
pub struct Host {
    /// Folder of the Unix socket if it begins with `/`, or with `@` for an abstract one; otherwise
    /// a host name or an address. A certificate must carry this name.
    pub host: String,
    /// Address to connect to instead of looking up the name.
    pub hostaddr: Option<String>,
    /// Port, also part of the Unix socket's name.
    pub port: u16,
    /// Password, if this server asks for one.
    pub password: Option<Password>,
}

impl Host {
    /// Path of the Unix socket, `None` for TCP. An abstract one begins with a zero byte.
    #[must_use]
    pub fn socket_path(&self) -> Option<String> {
        if self.hostaddr.is_some() {
            return None;
        }
        let path = |folder: &str| format!("{folder}/.s.PGSQL.{}", self.port);
        match self.host.strip_prefix('@') {
            Some(name) => Some(path(&format!("\0{name}"))),
            None => self.host.starts_with('/').then(|| path(&self.host)),
        }
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = self.socket_path() {
            return f.write_str(&path.replace('\0', "@"));
        }
        let bracketed = |host: &str| {
            if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
        };
        write!(f, "{}:{}", bracketed(&self.host), self.port)?;
        match &self.hostaddr {
            Some(address) if *address != self.host => write!(f, " ({address})"),
            _ => Ok(()),
        }
    }
}
