//! What one thread of the driver has of one database: its terminals, its connections, its meter.
//! Everything here is used by one thread only; what threads share is in [`Shared`]. How it runs is
//! in [`thread`].

pub mod thread;

use std::{
    cell::{Cell, RefCell},
    future::Future,
    sync::Arc,
};

use tokio::sync::Notify;
use wire::{CancelKey, Timestamp};
use workload::{Audit, Workload};

use crate::{
    clock::Clock,
    connection::{opener::Opener, retry::Ending},
    measure::{
        ledger::{Entry, Ledger, Pages},
        meter::{Meter, Record, Taken, Unanswered},
        statements::{Groups, Laps},
    },
    schedule::{
        arrivals::Terminals,
        queue::{Head, Job, Queue, Schedule, ServerRole},
        ramps::Profile,
        slowdowns::{Slowdown, Slowdowns},
        timeline::{Timeline, Window},
    },
    shared::{Published, Shared},
};

/// What one thread is given.
#[derive(Clone, Debug)]
pub struct Share {
    /// Its number among all workers, from 0.
    pub worker: usize,
    /// The same among the workers of all hosts: connections lost together come back apart.
    pub seat: usize,
    /// How many it opens.
    pub connections: usize,
    /// How many it opens with the replica, if there is one.
    pub replica_connections: usize,
    /// Its terminals.
    pub terminals: Terminals,
    /// What its requests follow.
    pub schedule: Schedule,
    /// When its exchanges are made slower on purpose.
    pub slowdowns: Vec<Slowdown>,
    /// Repetitions of one request.
    pub retries_max: u32,
    /// How long the run goes on without any connection.
    pub give_up_ns: u64,
    /// What account of its requests is kept in.
    pub ledger: Option<Arc<Ledger>>,
}

/// One thread's state, shared by its connections' tasks.
pub struct Worker<W: Workload, K, D> {
    pub(crate) workload: Arc<W>,
    pub(crate) clock: K,
    opener: D,
    /// Sessions with the replica; `None`: the primary answers everything.
    replica: Option<D>,
    /// Slots from here on are of the replica.
    first_replica: usize,
    pub(crate) shared: Arc<Shared>,
    pub(crate) timeline: Timeline,
    pub(crate) meter: RefCell<Meter<W::Audit>>,
    pub(crate) retries_max: u32,
    pub(crate) give_up_ns: u64,
    pub(crate) seed: u64,
    pub(crate) number: usize,
    pub(crate) seat: usize,
    pub(crate) groups: Groups,
    /// `None`: exchanges are as fast as they can be.
    pub(crate) slowdowns: Option<Slowdowns>,
    /// `None`: no account is kept of single requests.
    ledger: Option<RefCell<Pages>>,
    queue: RefCell<Queue<W>>,
    /// By connection: what is being performed since when, and what would cancel it.
    in_flight: RefCell<Vec<Option<(Head, u64)>>>,
    keys: RefCell<Vec<Option<CancelKey>>>,
    /// By connection: the exchanges of what is being performed. They outlive the task that makes
    /// them, which ends in the middle when the drain does.
    pub(crate) laps: Vec<RefCell<Laps>>,
    /// Connections without a request wait here, by the role of their server.
    idle: [Notify; 2],
    /// The earliest due time changed.
    earlier: Notify,
    /// All requests of all terminals were made and answered.
    exhausted: Cell<bool>,
    ended: Cell<bool>,
    end: Notify,
}

impl<W: Workload, K: Clock, D: Opener> Worker<W, K, D> {
    fn new(
        share: Share,
        workload: Arc<W>,
        clock: K,
        opener: D,
        shared: Arc<Shared>,
        timeline: Timeline,
    ) -> Self {
        let profile = Profile::new(&share.schedule.steps, &timeline);
        let meter = Meter::new(workload.kinds().len(), profile, &timeline);
        let (number, seat, seed) = (share.worker, share.seat, share.schedule.seed);
        let groups = Groups::new(workload.statements());
        let slowdowns = Slowdowns::new(&share.slowdowns, &timeline);
        let part = share.schedule.part;
        let ledger = share.ledger.map(|ledger| RefCell::new(Pages::new(ledger, part)));
        let queue = Queue::new(Arc::clone(&workload), share.terminals, share.schedule, &timeline);
        let replica = opener.replica();
        let slots = share.connections + replica.as_ref().map_or(0, |_| share.replica_connections);
        Self {
            workload,
            clock,
            opener,
            replica,
            first_replica: share.connections,
            shared,
            timeline,
            meter: RefCell::new(meter),
            retries_max: share.retries_max,
            give_up_ns: share.give_up_ns,
            seed,
            number,
            seat,
            groups,
            slowdowns,
            ledger,
            queue: RefCell::new(queue),
            in_flight: RefCell::new(vec![None; slots]),
            keys: RefCell::new(vec![None; slots]),
            laps: (0..slots).map(|_| RefCell::default()).collect(),
            idle: [Notify::new(), Notify::new()],
            earlier: Notify::new(),
            exhausted: Cell::new(false),
            ended: Cell::new(false),
            end: Notify::new(),
        }
    }

    /// The window as it is by now: an early end of the warm-up makes it longer, a stop shorter.
    pub(crate) fn window(&self) -> Window {
        Window { from_ns: self.shared.from_ns(), until_ns: self.shared.until_ns() }
    }

    /// The next request for a connection, and when it was taken up; waits until there is one.
    /// After the window, however it ended, there are those that became due in it. `None`: the run
    /// is over.
    pub(crate) async fn next(&self, slot: usize) -> Option<(Job<W::Request>, u64)> {
        let role =
            if slot < self.first_replica { ServerRole::Primary } else { ServerRole::Replica };
        loop {
            let now_ns = self.clock.now_ns();
            let window = self.window();
            if let Some(job) = self.take(role, now_ns, window) {
                self.in_flight.borrow_mut()[slot] = Some((job.head, now_ns));
                return Some((job, now_ns));
            }
            if now_ns >= window.until_ns {
                return None;
            }
            self.idle[role as usize].notified().await;
        }
    }

    /// How sessions of a slot are made.
    pub(crate) fn opener_of(&self, slot: usize) -> &D {
        let replica = self.replica.as_ref().filter(|_| slot >= self.first_replica);
        replica.unwrap_or(&self.opener)
    }

    /// Wakes a connection with each server for which a request waits.
    pub(crate) fn wake_idle(&self, queue: &Queue<W>) {
        for role in ServerRole::ALL {
            if queue.is_ready(role) {
                self.idle[role as usize].notify_one();
            }
        }
    }

    fn take(&self, role: ServerRole, now_ns: u64, window: Window) -> Option<Job<W::Request>> {
        let mut queue = self.queue.borrow_mut();
        let before = queue.next_due_ns().unwrap_or(u64::MAX);
        let job = queue.take(role, now_ns, window);
        self.wake_idle(&queue);
        if queue.next_due_ns().is_some_and(|due_ns| due_ns < before) {
            self.earlier.notify_one();
        }
        job
    }

    /// Enters a request into the ledger before it is performed. `None`: none is kept, or it leaves
    /// nothing behind.
    pub(crate) fn enter(
        &self,
        head: &Head,
        request: &W::Request,
        now: Timestamp,
        taken_ns: u64,
    ) -> Option<Entry> {
        let ledger = self.ledger.as_ref()?;
        let witness = self.workload.witness(request, now)?;
        let entry = Entry { taken_ns, kind: head.kind, witness };
        self.written(ledger.borrow_mut().begun(entry));
        Some(entry)
    }

    /// Enters how it ended.
    pub(crate) fn enter_end(&self, entry: Option<Entry>, ended_ns: u64, ending: &Ending) {
        if let (Some(ledger), Some(entry)) = (&self.ledger, entry) {
            self.written(ledger.borrow_mut().ended(entry, ended_ns, ending));
        }
    }

    /// Writes what of the ledger was kept back.
    pub(crate) fn flush_ledger(&self) {
        if let Some(ledger) = &self.ledger {
            self.written(ledger.borrow_mut().flush());
        }
    }

    /// Without its ledger a run proves nothing.
    fn written(&self, written: Result<(), String>) {
        if let Err(why) = written {
            self.shared.give_up(self.clock.now_ns(), why);
        }
    }

    /// Records a request that ended, and lets its terminal go on.
    pub(crate) fn answered(&self, slot: usize, record: &Record<'_>, request: &W::Request) {
        let window = self.window();
        let mut meter = self.meter.borrow_mut();
        meter.record(record, request, window);
        meter.digest.add(record.head, self.workload.digest(request));
        drop(meter);
        self.in_flight.borrow_mut()[slot] = None;
        let mut queue = self.queue.borrow_mut();
        let before = queue.next_due_ns().unwrap_or(u64::MAX);
        queue.answered(record.head, record.ended_ns, window);
        if self.replica.is_some() {
            // What the terminal asks next may be for others than who answered it.
            self.wake_idle(&queue);
        }
        if queue.next_due_ns().is_some_and(|due_ns| due_ns < before) {
            self.earlier.notify_one();
        }
        if queue.is_exhausted() && !self.is_busy() && !self.exhausted.replace(true) {
            self.shared.exhausted(self.clock.now_ns());
        }
    }

    fn is_busy(&self) -> bool {
        self.in_flight.borrow().iter().any(Option::is_some)
    }

    /// Waits for something, but not longer than the run lasts.
    pub(crate) async fn or_end<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        if self.ended.get() {
            return None;
        }
        tokio::select! {
            () = self.end.notified() => None,
            result = what => Some(result),
        }
    }

    /// Remembers how to cancel what a connection does.
    pub(crate) fn keep_key(&self, slot: usize, key: Option<CancelKey>) {
        self.keys.borrow_mut()[slot] = key;
    }

    /// A connection is closed in good order.
    pub(crate) fn hang_up(&self, slot: usize) {
        self.keep_key(slot, None);
        self.shared.disconnected(self.clock.now_ns());
    }

    fn published(&self) -> &Published {
        &self.shared.published()[self.number]
    }

    /// Cancels on the server what was still in flight when the drain ended.
    async fn cancel_abandoned(&self) {
        let abandoned: Vec<(usize, CancelKey)> = {
            let in_flight = self.in_flight.borrow();
            let keys = self.keys.borrow();
            let slots = in_flight.iter().zip(keys.iter()).enumerate();
            slots
                .filter_map(|(slot, (performed, key))| performed.and(*key).map(|key| (slot, key)))
                .collect()
        };
        for (slot, key) in abandoned {
            self.opener_of(slot).cancel(key).await;
        }
    }

    /// Closes the books: what is left was due, and had no answer when the drain ended.
    fn settle(&self, ended_ns: u64) -> Meter<W::Audit> {
        let window = self.window();
        let kinds = self.workload.kinds();
        let mut meter = self.meter.replace(Meter::new(
            kinds.len(),
            Profile::new(&[], &self.timeline),
            &self.timeline,
        ));
        let mut queue = self.queue.borrow_mut();
        for head in queue.left(window) {
            meter.unanswered(&Unanswered { head: &head, taken: None }, window, ended_ns);
        }
        for (performed, laps) in self.in_flight.borrow().iter().zip(&self.laps) {
            let Some((head, at_ns)) = performed else { continue };
            let taken = Some(Taken { at_ns: *at_ns, laps: &laps.borrow() });
            meter.unanswered(&Unanswered { head, taken }, window, ended_ns);
        }
        meter.add_due(queue.book());
        meter.assert_conserved(kinds);
        meter.publish(self.published(), self.clock.now_ns());
        meter
    }
}

impl<W: Workload, K, D> std::fmt::Debug for Worker<W, K, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("timeline", &self.timeline).finish_non_exhaustive()
    }
}

/// Adds the threads' counts.
///
/// # Panics
///
/// When a request was lost or counted twice.
#[must_use]
pub fn merge<A: Audit>(meters: Vec<Meter<A>>, kinds: &[String]) -> Option<Meter<A>> {
    let mut meters = meters.into_iter();
    let mut sum = meters.next()?;
    for meter in meters {
        sum.merge(&meter);
    }
    sum.assert_conserved(kinds);
    Some(sum)
}
