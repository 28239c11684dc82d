//! The runtime beside the measured threads: it looks up names, begins sessions and ends pauses for
//! them. Once the sessions stand it sleeps, unless one is lost.

use std::{io, thread};

use tokio::{
    runtime::{self, EnterGuard, Handle},
    sync::mpsc,
};

/// A runtime with a thread of its own, until the last of its holders is gone.
#[derive(Clone, Debug)]
pub struct Background {
    handle: Handle,
    _held: mpsc::Sender<()>,
}

impl Background {
    /// Starts it.
    ///
    /// # Errors
    ///
    /// The kernel has no thread or no descriptor left.
    pub fn start() -> io::Result<Self> {
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (held, mut released) = mpsc::channel::<()>(1);
        let body = move || runtime.block_on(released.recv());
        thread::Builder::new().name("pgdyno-background".into()).spawn(body)?;
        Ok(Self { handle, _held: held })
    }

    /// What this thread asks of tokio meanwhile, that runtime does.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.handle.enter()
    }
}
