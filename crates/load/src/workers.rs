//! Several sessions that work through the steps, each in a thread of its own: making rows takes
//! CPU, and a session that waits must not hold up the others.

use std::{pin::pin, thread, time::Duration};

use tokio::{runtime, time::timeout};
use wire::{CancelKey, Session, Target};
use workload::dataset::Dataset;

use super::{
    job::{Unfinished, run},
    progress::Shared,
    step_queue::StepQueue,
    steps::Step,
    tables::ATTENDANCE,
};
use drive::{clock::steady_ns, error::RunError};

/// A cancelled statement ends within this time, or its session is given up.
const CANCEL_PATIENCE: Duration = Duration::from_secs(10);

/// Does all steps by `count` sessions. The first failure cancels what the others do.
pub(super) fn work(
    target: &Target,
    dataset: &dyn Dataset,
    shared: &Shared,
    queue: &StepQueue,
    count: usize,
) -> Result<(), RunError> {
    let results: Vec<Result<(), RunError>> = thread::scope(|scope| {
        let start = |slot| {
            let worker = Worker { target, dataset, shared, queue, slot };
            let body = move || {
                let result = worker.work();
                if result.is_err() {
                    shared.fail();
                }
                shared.step(slot, None);
                result
            };
            thread::Builder::new().name("pgdyno-load".into()).spawn_scoped(scope, body)
        };
        let threads: Vec<_> = (0..count).map(start).collect();
        let join = |thread: Result<thread::ScopedJoinHandle<'_, _>, _>| match thread {
            Ok(thread) => {
                thread.join().unwrap_or_else(|_| Err(RunError::internal("loader panicked".into())))
            }
            Err(e) => {
                shared.fail();
                Err(RunError::internal(format!("start a thread: {e}")))
            }
        };
        threads.into_iter().map(join).collect()
    });
    results.into_iter().collect()
}

/// One session and its thread.
struct Worker<'a> {
    target: &'a Target,
    dataset: &'a dyn Dataset,
    shared: &'a Shared,
    queue: &'a StepQueue,
    slot: usize,
}

impl Worker<'_> {
    fn work(&self) -> Result<(), RunError> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|e| RunError::internal(format!("start a runtime: {e}")))?;
        runtime.block_on(async {
            let failed = |what: &str, e: &wire::Error| RunError::target(&what, e);
            let mut session = Session::connect(self.target, &[])
                .await
                .map_err(|e| RunError::opening(&self.target, &e))?;
            session.simple(ATTENDANCE).await.map_err(|e| failed("join the load", &e))?;
            let mut buffer = Vec::new();
            while let Some((at, step)) = self.queue.take(self.shared) {
                self.shared.step(self.slot, Some(step.name.clone()));
                let from_ns = steady_ns();
                match self.step(step, &mut session, &mut buffer).await {
                    Ok(()) => self.queue.done(at, from_ns, self.shared),
                    // Whoever stopped the load knows why.
                    Err(Unfinished::Stopped) => return Ok(()),
                    Err(Unfinished::Failed(e)) => return Err(failed(&step.name, &e)),
                }
                self.shared.step(self.slot, None);
            }
            // Everything is done and committed: a goodbye that is not heard changes nothing.
            let _unheard = session.close().await;
            Ok(())
        })
    }

    /// Does a step unless the load stops meanwhile; then the server is asked to stop as well.
    async fn step(
        &self,
        step: &Step,
        session: &mut Session,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Unfinished> {
        let key = session.cancel_key();
        let mut work = pin!(run(step, session, self.dataset, self.shared, buffer));
        tokio::select! {
            biased;
            done = &mut work => done,
            () = self.shared.ended() => {
                cancel(key, self.target).await;
                // A COPY sees the stop by itself; a statement ends with the server's error.
                let _ended = timeout(CANCEL_PATIENCE, work).await;
                Err(Unfinished::Stopped)
            }
        }
    }
}

/// Best effort: the session is given up in any case, and the server may be gone.
async fn cancel(key: Option<CancelKey>, target: &Target) {
    if let Some(key) = key {
        let _best_effort = timeout(CANCEL_PATIENCE, key.cancel(target)).await;
    }
}
