//! Fills a database: tables, rows by COPY over several connections, keys and indexes, vacuum,
//! foreign keys, and at last the record of what was loaded. Runs in threads of its own. Or writes
//! the rows into files (`export`).

mod estimate;
pub mod export;
mod job;
mod ledger;
mod look;
mod phases;
mod pieces;
mod plan;
mod progress;
mod report;
mod server;
mod share;
mod spec;
mod step_queue;
mod steps;
mod strategy;
mod tables;
mod workers;

use std::{
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use drive::error::RunError;

pub use estimate::{LoadEstimate, estimate};
pub use progress::{LoadProgress, Phase};
pub use report::{Choice, LoadReport, PhaseReport, TableReport};
pub use spec::{LoadSpec, Part};
pub use strategy::Copies;

use progress::Shared;

/// A load under way, or ended.
#[derive(Debug)]
pub struct Load {
    shared: Arc<Shared>,
    result: mpsc::Receiver<Result<LoadReport, RunError>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Load {
    /// Begins in threads of its own.
    ///
    /// # Errors
    ///
    /// The specification is refused, or no thread can be started.
    pub fn start(spec: LoadSpec) -> Result<Self, RunError> {
        let (asked, tables) = plan::Asked::new(spec)?;
        let shared = Arc::new(Shared::new(tables));
        let (sender, result) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let body = move || {
            let outcome = phases::run(&asked, &theirs);
            theirs.finish();
            // Nobody listens any more when the load was dropped.
            let _unheard = sender.send(outcome);
        };
        let thread = thread::Builder::new()
            .name("pgdyno-load".into())
            .spawn(body)
            .map_err(|e| RunError::internal(format!("start a thread: {e}")))?;
        Ok(Self { shared, result, thread: Some(thread) })
    }

    /// How far the load is; its phase is `done` when there is a result or an error.
    #[must_use]
    pub fn progress(&self) -> LoadProgress {
        self.shared.read()
    }

    /// Gives up: what the server is doing for us is cancelled. The result is then an error that
    /// says what was left behind.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Waits for the result; `None` when it is not there in time.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> Option<Result<LoadReport, RunError>> {
        match self.result.recv_timeout(patience) {
            Ok(result) => Some(result),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Some(Err(RunError::internal("loader panicked, or its result was taken".into())))
            }
        }
    }
}

impl Drop for Load {
    /// A load that nobody waits for must not go on, nor leave its server work behind.
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the result already.
            let _ended = thread.join();
        }
    }
}
