//! A worker at work: it connects, runs its connections' tasks until the window ends and the drain
//! is over, and closes its books.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use reactor::Tasks;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use wire::{Error, Session};
use workload::Workload;

use super::{Share, Worker};
use crate::{
    clock::Clock,
    connection::{client::run_client, opener::Opener},
    measure::meter::Meter,
    schedule::timeline::Timeline,
    shared::Shared,
};

const SECOND_NS: u64 = 1_000_000_000;
/// A server that is starting or recovering; the only refusal that waiting cures.
const CANNOT_CONNECT_NOW: &str = "57P03";
const STARTUP_PAUSE: Duration = Duration::from_millis(200);

/// Opens a thread's connections, one after the other: servers have short queues.
///
/// # Errors
///
/// The server refuses; `None` where the run was stopped meanwhile.
pub async fn connect<K: Clock, D: Opener>(
    share: &Share,
    clock: &K,
    opener: &D,
    shared: &Shared,
) -> Result<Option<Vec<Session<D::Stream>>>, Error> {
    connect_some(share.connections, share.give_up_ns, clock, opener, shared).await
}

/// Opens so many connections, one after the other.
///
/// # Errors
///
/// As [`connect`].
pub async fn connect_some<K: Clock, D: Opener>(
    count: usize,
    give_up_after_ns: u64,
    clock: &K,
    opener: &D,
    shared: &Shared,
) -> Result<Option<Vec<Session<D::Stream>>>, Error> {
    let give_up_ns = clock.now_ns() + give_up_after_ns;
    let mut sessions = Vec::with_capacity(count);
    while sessions.len() < count {
        let Some(session) = connect_one(clock, opener, shared, give_up_ns).await? else {
            return Ok(None);
        };
        shared.connected();
        sessions.push(session);
    }
    Ok(Some(sessions))
}

/// Opens one connection, and waits until an instant for a server that is starting or recovering.
///
/// # Errors
///
/// The server refuses; `None` where the run was stopped meanwhile.
pub async fn connect_one<K: Clock, D: Opener>(
    clock: &K,
    opener: &D,
    shared: &Shared,
    give_up_ns: u64,
) -> Result<Option<Session<D::Stream>>, Error> {
    while !shared.is_stopped() {
        match opener.open().await {
            Ok(session) => return Ok(Some(session)),
            Err(error) if error.sqlstate() != Some(CANNOT_CONNECT_NOW) => return Err(error),
            Err(error) if clock.now_ns() >= give_up_ns => return Err(error),
            Err(_starting) => sleep(STARTUP_PAUSE).await,
        }
    }
    Ok(None)
}

/// Runs one thread's share from the start of the warm-up to the end of the drain. Returns what it
/// counted, conserved.
pub async fn run_worker<W: Workload, K: Clock, D: Opener>(
    share: Share,
    workload: Arc<W>,
    clock: K,
    opener: D,
    shared: Arc<Shared>,
    timeline: Timeline,
    sessions: Vec<Session<D::Stream>>,
) -> Meter<W::Audit> {
    let worker = Worker::new(share, workload, clock, opener, shared, timeline);
    worker.queue.borrow_mut().begin(timeline.start_ns, worker.window());
    let mut clients: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for (slot, session) in sessions.into_iter().enumerate() {
        worker.keep_key(slot, session.cancel_key());
        clients.push(Box::pin(run_client(&worker, slot, session)));
    }
    let waker = clients.len();
    clients.push(Box::pin(wake(&worker)));
    let mut tasks = Tasks::new(clients);
    tasks.until(waker).await;
    let drained = async {
        tokio::select! {
            () = tasks.all() => {}
            () = publish(&worker) => {}
        }
    };
    let drained = timeout(Duration::from_nanos(timeline.drain_ns), drained).await;
    let ended_ns = worker.clock.now_ns();
    drop(tasks);
    worker.flush_ledger();
    if drained.is_err() {
        worker.cancel_abandoned().await;
    }
    worker.settle(ended_ns)
}

/// Wakes connections when requests become due, and tells the other threads how far this one is at
/// every whole second, until the window ends.
///
/// Both by one timer of the kernel: tokio's belong to another thread, and wake up late.
async fn wake<W: Workload, K: Clock, D: Opener>(worker: &Worker<W, K, D>) {
    let mut timeline = worker.shared.follow();
    let mut publish_ns = worker.timeline.start_ns + SECOND_NS;
    loop {
        let until_ns = worker.window().until_ns;
        let due_ns = worker.queue.borrow().next_due_ns().unwrap_or(u64::MAX);
        tokio::select! {
            () = worker.clock.sleep_until(due_ns.min(until_ns).min(publish_ns)) => {}
            () = worker.earlier.notified() => {}
            _changed = changed(&mut timeline) => {}
        }
        let now_ns = worker.clock.now_ns();
        if now_ns >= worker.window().until_ns {
            worker.ended.set(true);
            worker.end.notify_waiters();
            worker.idle.iter().for_each(Notify::notify_waiters);
            return;
        }
        if now_ns >= publish_ns {
            worker.meter.borrow().publish(worker.published(), now_ns);
            publish_ns = now_ns + SECOND_NS - (now_ns - worker.timeline.start_ns) % SECOND_NS;
        }
        let mut queue = worker.queue.borrow_mut();
        queue.promote(now_ns, worker.window());
        worker.wake_idle(&queue);
    }
}

/// The sender lives as long as the worker's `Shared`.
async fn changed(timeline: &mut watch::Receiver<Option<Timeline>>) -> bool {
    timeline.changed().await.is_ok()
}

/// Tells the other threads how far this one is, at every whole second of the drain.
async fn publish<W: Workload, K: Clock, D: Opener>(worker: &Worker<W, K, D>) {
    loop {
        let running_ns = worker.clock.now_ns() - worker.timeline.start_ns;
        sleep(Duration::from_nanos(SECOND_NS - running_ns % SECOND_NS)).await;
        worker.meter.borrow().publish(worker.published(), worker.clock.now_ns());
    }
}
