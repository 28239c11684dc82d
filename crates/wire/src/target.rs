//! Where a session goes and as whom, in libpq's words.

use std::{fmt, time::Duration};

use crate::{error::Error, host::Host, tls::Tls};

/// `target_session_attrs`: which servers of a list will do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionAttrs {
    /// Any.
    #[default]
    Any,
    /// One whose sessions may write.
    ReadWrite,
    /// One whose sessions may not.
    ReadOnly,
    /// One that is not in recovery.
    Primary,
    /// One that is.
    Standby,
    /// A standby if there is one, otherwise any.
    PreferStandby,
}

impl SessionAttrs {
    /// As libpq spells it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
            Self::Primary => "primary",
            Self::Standby => "standby",
            Self::PreferStandby => "prefer-standby",
        }
    }
}

/// `channel_binding`: whether SCRAM ties the password to the TLS connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChannelBinding {
    /// Never.
    Disable,
    /// Where both sides can.
    #[default]
    Prefer,
    /// Or no session.
    Require,
}

/// How the server learns the statements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prepare {
    /// Once, under a name, when the session begins; then only executed.
    #[default]
    Named,
    /// With every execution, in the same round trip: for poolers that give each transaction
    /// another server session and do not follow names.
    Unnamed,
}

/// TCP keepalive and its like; `None`: the system's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keepalive {
    /// Whether it is on.
    pub on: bool,
    /// Silence before the first probe.
    pub idle: Option<Duration>,
    /// Time between probes.
    pub interval: Option<Duration>,
    /// Probes without an answer after which the connection is dead.
    pub count: Option<u32>,
    /// How long sent data may stay unacknowledged.
    pub user_timeout: Option<Duration>,
}

impl Default for Keepalive {
    /// On, with the system's times: libpq's default.
    fn default() -> Self {
        Self { on: true, idle: None, interval: None, count: None, user_timeout: None }
    }
}

/// Where a session goes and as whom.
#[derive(Clone, Debug)]
pub struct Target {
    /// The servers, in the order in which they are tried; at least one.
    pub hosts: Vec<Host>,
    /// Which of them will do.
    pub session_attrs: SessionAttrs,
    /// Try them, and the addresses of each, in random order.
    pub load_balance: bool,
    /// Role.
    pub user: String,
    /// Database.
    pub database: String,
    /// Shown in `pg_stat_activity`.
    pub application_name: String,
    /// Server settings sent with the start of the session.
    pub options: Vec<(String, String)>,
    /// Command-line options of the server process, e.g. `-c work_mem=4MB`; libpq's `options`.
    pub command_line: Option<String>,
    /// TLS or not.
    pub tls: Tls,
    /// Whether SCRAM is tied to TLS.
    pub channel_binding: ChannelBinding,
    /// How statements are prepared.
    pub prepare: Prepare,
    /// Of TCP connections.
    pub keepalive: Keepalive,
    /// Time for one address of one server, from the first packet until every statement is prepared.
    pub connect_timeout: Duration,
}

impl Target {
    /// One server without password, TLS and options, with a connect timeout of ten seconds.
    #[must_use]
    pub fn new(host: &str, port: u16, user: &str, database: &str) -> Self {
        let host = Host { host: host.to_owned(), hostaddr: None, port, password: None };
        Self {
            hosts: vec![host],
            session_attrs: SessionAttrs::Any,
            load_balance: false,
            user: user.to_owned(),
            database: database.to_owned(),
            application_name: "pgdyno".to_owned(),
            options: Vec::new(),
            command_line: None,
            tls: Tls::disabled(),
            channel_binding: ChannelBinding::Prefer,
            prepare: Prepare::Named,
            keepalive: Keepalive::default(),
            connect_timeout: Duration::from_secs(10),
        }
    }

    /// Checks what would otherwise be sent in another meaning.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.hosts.is_empty() {
            return Err(Error::protocol("the list of hosts is empty"));
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
    /// The servers, without anything secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, host) in self.hosts.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{host}")?;
        }
        Ok(())
    }
}
