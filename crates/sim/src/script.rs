//! What a scripted server is told to do, and what it writes down.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// One execution that a client asked for, by either protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Connection, in the order of their arrival, from 0.
    pub connection: usize,
    /// Text of the statement.
    pub sql: String,
    /// Bound values in the format that was sent, `None` for NULL. For a COPY: the data, as one
    /// value.
    pub params: Vec<Option<Vec<u8>>>,
    /// Whether it follows a Sync (or is a simple query), i.e. begins a round trip.
    pub first_of_batch: bool,
}

/// One thing that the server does in answer to a [`Call`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Sends a row.
    Row(Vec<Option<Vec<u8>>>),
    /// Ends the answer with a command tag. Without one the statement's first word and 0 are used.
    Complete(String),
    /// Sends an error; the rest of the batch is skipped. `FATAL` also closes the connection.
    Error {
        /// `ERROR`, `FATAL` or `PANIC`.
        severity: &'static str,
        /// Five characters.
        sqlstate: &'static str,
        /// Text.
        message: String,
    },
    /// Sends what is ready, then pauses.
    Wait(Duration),
    /// Sends bytes as they are.
    Raw(Vec<u8>),
    /// Sends what is ready and closes the connection.
    Close,
}

impl Step {
    /// An ordinary error.
    #[must_use]
    pub fn error(sqlstate: &'static str, message: &str) -> Self {
        Self::Error { severity: "ERROR", sqlstate, message: message.to_owned() }
    }

    /// An error that ends the session.
    #[must_use]
    pub fn fatal(sqlstate: &'static str, message: &str) -> Self {
        Self::Error { severity: "FATAL", sqlstate, message: message.to_owned() }
    }
}

/// How the server wants to be convinced.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Auth {
    /// Anybody.
    #[default]
    Trust,
    /// The password in clear text.
    Cleartext(String),
    /// The password as an md5 hash with a salt.
    Md5(String),
    /// A method by its number, whatever the client answers.
    Unknown(i32),
}

/// Decides what the server does. One script serves all connections, one call at a time.
pub trait Script: Send {
    /// What to do when a client connects; nothing: let it in.
    fn greet(&mut self, _connection: usize) -> Vec<Step> {
        Vec::new()
    }

    /// What to do when a client prepares; nothing: accept.
    fn parse(&mut self, _sql: &str) -> Vec<Step> {
        Vec::new()
    }

    /// Names of the columns that a statement returns; none: it returns no rows.
    fn columns(&mut self, _sql: &str) -> Vec<String> {
        Vec::new()
    }

    /// What to do for an execution.
    fn call(&mut self, call: &Call) -> Vec<Step>;

    /// How clients must authenticate.
    fn auth(&self) -> Auth {
        Auth::Trust
    }
}

impl<F: FnMut(&Call) -> Vec<Step> + Send> Script for F {
    fn call(&mut self, call: &Call) -> Vec<Step> {
        self(call)
    }
}

/// Everything executed, in the order of arrival.
#[derive(Clone, Debug, Default)]
pub struct Log(Arc<Mutex<Vec<Call>>>);

impl Log {
    /// The calls so far.
    #[must_use]
    pub fn calls(&self) -> Vec<Call> {
        lock(&self.0).clone()
    }

    pub(crate) fn add(&self, call: Call) {
        lock(&self.0).push(call);
    }
}

/// A script and its log, shared by the connections of a server.
#[derive(Clone)]
pub struct Scripted {
    pub(crate) script: Arc<Mutex<dyn Script>>,
    pub(crate) log: Log,
    connections: Arc<Mutex<usize>>,
}

impl Scripted {
    /// A server that follows the script.
    #[must_use]
    pub fn new(script: impl Script + 'static) -> Self {
        Self {
            script: Arc::new(Mutex::new(script)),
            log: Log::default(),
            connections: Arc::default(),
        }
    }

    /// Everything executed so far, on all connections.
    #[must_use]
    pub fn log(&self) -> Log {
        self.log.clone()
    }

    /// Connections begun so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        *lock(&self.connections)
    }

    pub(crate) fn next_connection(&self) -> usize {
        let mut connections = lock(&self.connections);
        *connections += 1;
        *connections - 1
    }
}

/// A panic of a test's script fails that test; the others' state stays readable.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
