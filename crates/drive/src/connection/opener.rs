//! How the driver gets sessions: from a server, or in tests from a scripted one.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    time::timeout,
};
use wire::{CancelKey, Error, Session, Statement, Stream, Target};

/// Makes sessions of one kind; its text names the server.
pub trait Opener: fmt::Display + 'static {
    /// What a session runs on.
    type Stream: AsyncRead + AsyncWrite + Unpin + 'static;

    /// Connects, authenticates, prepares.
    fn open(&self) -> impl Future<Output = Result<Session<Self::Stream>, Error>>;

    /// Makes sessions with the replica of the same database; `None`: there is none.
    fn replica(&self) -> Option<Self>
    where
        Self: Sized,
    {
        None
    }

    /// Asks the server to cancel what an abandoned session was doing; best effort.
    fn cancel(&self, key: CancelKey) -> impl Future<Output = ()>;
}

/// Sessions with a real server.
#[derive(Clone, Debug)]
pub struct ServerOpener {
    target: Arc<Target>,
    replica: Option<Arc<Target>>,
    statements: Arc<[Statement]>,
}

impl ServerOpener {
    /// Sessions with this server that know these statements.
    #[must_use]
    pub fn new(target: Target, statements: &[Statement]) -> Self {
        Self { target: Arc::new(target), replica: None, statements: statements.into() }
    }

    /// The same, with a replica that answers some kinds.
    #[must_use]
    pub fn with_replica(self, replica: Target) -> Self {
        Self { replica: Some(Arc::new(replica)), ..self }
    }

    /// Sessions with the same server that know no statement.
    #[must_use]
    pub fn bare(&self) -> Self {
        Self { target: Arc::clone(&self.target), replica: None, statements: Arc::new([]) }
    }
}

impl fmt::Display for ServerOpener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.target.fmt(f)
    }
}

const CANCEL_TIMEOUT: Duration = Duration::from_secs(1);

impl Opener for ServerOpener {
    type Stream = Stream;

    async fn open(&self) -> Result<Session<Stream>, Error> {
        Session::connect(&self.target, &self.statements).await
    }

    fn replica(&self) -> Option<Self> {
        let target = Arc::clone(self.replica.as_ref()?);
        Some(Self { target, replica: None, statements: Arc::clone(&self.statements) })
    }

    async fn cancel(&self, key: CancelKey) {
        // The session is given up in any case; the server may be gone.
        let _best_effort = timeout(CANCEL_TIMEOUT, key.cancel(&self.target)).await;
    }
}
