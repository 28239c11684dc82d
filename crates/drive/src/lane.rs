//! One thread of the driver: its terminals, its connections, its meter. Everything here is used by
//! one thread only; what threads share is in [`Shared`].

use std::{
    cell::{Cell, RefCell},
    future::Future,
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use reactor::Tasks;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};
use wire::{CancelKey, Error, Session};
use workload::{Audit, Workload};

use crate::{
    arrivals::Terminals,
    client::run_client,
    clock::Clock,
    course::{Course, Published, Shared, Window},
    dial::Dial,
    meter::{Meter, Record, Taken, Unanswered},
    queue::{Head, Job, Queue, Schedule},
    statements::{Groups, Laps},
    steps::Profile,
};

const SECOND_NS: u64 = 1_000_000_000;
/// A server that is starting or recovering; the only refusal that waiting cures.
const CANNOT_CONNECT_NOW: &str = "57P03";
const STARTUP_PAUSE: Duration = Duration::from_millis(200);

/// What one thread is given.
#[derive(Clone, Debug)]
pub struct Share {
    /// Its number among all lanes, from 0.
    pub lane: usize,
    /// How many it opens.
    pub connections: usize,
    /// Its terminals.
    pub terminals: Terminals,
    /// What its requests follow.
    pub schedule: Schedule,
    /// Repetitions of one request.
    pub retries_max: u32,
    /// How long the run goes on without any connection.
    pub give_up_ns: u64,
}

/// One thread's state, shared by its connections' tasks.
pub struct Lane<W: Workload, K, D> {
    pub(crate) workload: Arc<W>,
    pub(crate) clock: K,
    pub(crate) dial: D,
    pub(crate) shared: Arc<Shared>,
    pub(crate) course: Course,
    pub(crate) meter: RefCell<Meter<W::Audit>>,
    pub(crate) retries_max: u32,
    pub(crate) give_up_ns: u64,
    pub(crate) seed: u64,
    pub(crate) number: usize,
    pub(crate) groups: Groups,
    queue: RefCell<Queue<W>>,
    /// By connection: what is being performed since when, and what would cancel it.
    in_flight: RefCell<Vec<Option<(Head, u64)>>>,
    keys: RefCell<Vec<Option<CancelKey>>>,
    /// By connection: the exchanges of what is being performed. They outlive the task that makes
    /// them, which ends in the middle when the drain does.
    pub(crate) laps: Vec<RefCell<Laps>>,
    /// Connections without a request wait here.
    idle: Notify,
    /// The earliest due time changed.
    earlier: Notify,
    /// All requests of all terminals were made and answered.
    exhausted: Cell<bool>,
    ended: Cell<bool>,
    end: Notify,
}

/// Opens a thread's connections, one after the other: servers have short queues.
///
/// # Errors
///
/// The server refuses; `None` where the run was stopped meanwhile.
pub async fn connect<K: Clock, D: Dial>(
    share: &Share,
    clock: &K,
    dial: &D,
    shared: &Shared,
) -> Result<Option<Vec<Session<D::Stream>>>, Error> {
    let give_up_ns = clock.now_ns() + share.give_up_ns;
    let mut sessions = Vec::with_capacity(share.connections);
    while sessions.len() < share.connections {
        let Some(session) = connect_one(clock, dial, shared, give_up_ns).await? else {
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
pub async fn connect_one<K: Clock, D: Dial>(
    clock: &K,
    dial: &D,
    shared: &Shared,
    give_up_ns: u64,
) -> Result<Option<Session<D::Stream>>, Error> {
    while !shared.is_stopped() {
        match dial.dial().await {
            Ok(session) => return Ok(Some(session)),
            Err(error) if error.sqlstate() != Some(CANNOT_CONNECT_NOW) => return Err(error),
            Err(error) if clock.now_ns() >= give_up_ns => return Err(error),
            Err(_starting) => sleep(STARTUP_PAUSE).await,
        }
    }
    Ok(None)
}

/// Runs one thread's share from the begin of the warm-up to the end of the drain. Returns what it
/// counted, conserved.
pub async fn run_lane<W: Workload, K: Clock, D: Dial>(
    share: Share,
    workload: Arc<W>,
    clock: K,
    dial: D,
    shared: Arc<Shared>,
    course: Course,
    sessions: Vec<Session<D::Stream>>,
) -> Meter<W::Audit> {
    let lane = Lane::new(share, workload, clock, dial, shared, course);
    lane.queue.borrow_mut().begin(course.start_ns, lane.window());
    let mut clients: Vec<Pin<Box<dyn Future<Output = ()>>>> = Vec::new();
    for (slot, session) in sessions.into_iter().enumerate() {
        lane.keep_key(slot, session.cancel_key());
        clients.push(Box::pin(run_client(&lane, slot, session)));
    }
    let waker = clients.len();
    clients.push(Box::pin(wake(&lane)));
    let mut tasks = Tasks::new(clients);
    tasks.until(waker).await;
    let drained = async {
        tokio::select! {
            () = tasks.all() => {}
            () = publish(&lane) => {}
        }
    };
    let drained = timeout(Duration::from_nanos(course.drain_ns), drained).await;
    let ended_ns = lane.clock.now_ns();
    drop(tasks);
    if drained.is_err() {
        lane.cancel_abandoned().await;
    }
    lane.settle(ended_ns)
}

/// Wakes connections when requests become due, and tells the other threads how far this one is at
/// every whole second, until the window ends.
///
/// Both by one timer of the kernel: tokio's belong to another thread, and wake up late.
async fn wake<W: Workload, K: Clock, D: Dial>(lane: &Lane<W, K, D>) {
    let mut course = lane.shared.follow();
    let mut publish_ns = lane.course.start_ns + SECOND_NS;
    loop {
        let until_ns = lane.window().until_ns;
        let due_ns = lane.queue.borrow().next_due_ns().unwrap_or(u64::MAX);
        tokio::select! {
            () = lane.clock.sleep_until(due_ns.min(until_ns).min(publish_ns)) => {}
            () = lane.earlier.notified() => {}
            _changed = changed(&mut course) => {}
        }
        let now_ns = lane.clock.now_ns();
        if now_ns >= lane.window().until_ns {
            lane.ended.set(true);
            lane.end.notify_waiters();
            lane.idle.notify_waiters();
            return;
        }
        if now_ns >= publish_ns {
            lane.meter.borrow().publish(lane.published(), now_ns);
            publish_ns = now_ns + SECOND_NS - (now_ns - lane.course.start_ns) % SECOND_NS;
        }
        let mut queue = lane.queue.borrow_mut();
        queue.promote(now_ns, lane.window());
        if queue.is_ready() {
            lane.idle.notify_one();
        }
    }
}

/// The sender lives as long as the lane's `Shared`.
async fn changed(course: &mut watch::Receiver<Option<Course>>) -> bool {
    course.changed().await.is_ok()
}

/// Tells the other threads how far this one is, at every whole second of the drain.
async fn publish<W: Workload, K: Clock, D: Dial>(lane: &Lane<W, K, D>) {
    loop {
        let running_ns = lane.clock.now_ns() - lane.course.start_ns;
        sleep(Duration::from_nanos(SECOND_NS - running_ns % SECOND_NS)).await;
        lane.meter.borrow().publish(lane.published(), lane.clock.now_ns());
    }
}

impl<W: Workload, K: Clock, D: Dial> Lane<W, K, D> {
    fn new(
        share: Share,
        workload: Arc<W>,
        clock: K,
        dial: D,
        shared: Arc<Shared>,
        course: Course,
    ) -> Self {
        let profile = Profile::new(&share.schedule.steps, &course);
        let meter = Meter::new(workload.kinds().len(), profile, &course);
        let (number, seed) = (share.lane, share.schedule.seed);
        let groups = Groups::new(workload.statements());
        let queue = Queue::new(Arc::clone(&workload), share.terminals, share.schedule, &course);
        Self {
            workload,
            clock,
            dial,
            shared,
            course,
            meter: RefCell::new(meter),
            retries_max: share.retries_max,
            give_up_ns: share.give_up_ns,
            seed,
            number,
            groups,
            queue: RefCell::new(queue),
            in_flight: RefCell::new(vec![None; share.connections]),
            keys: RefCell::new(vec![None; share.connections]),
            laps: (0..share.connections).map(|_| RefCell::default()).collect(),
            idle: Notify::new(),
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
        loop {
            let now_ns = self.clock.now_ns();
            let window = self.window();
            if let Some(job) = self.take(now_ns, window) {
                self.in_flight.borrow_mut()[slot] = Some((job.head, now_ns));
                return Some((job, now_ns));
            }
            if now_ns >= window.until_ns {
                return None;
            }
            self.idle.notified().await;
        }
    }

    fn take(&self, now_ns: u64, window: Window) -> Option<Job<W::Request>> {
        let mut queue = self.queue.borrow_mut();
        let before = queue.next_due_ns().unwrap_or(u64::MAX);
        let job = queue.take(now_ns, window);
        if queue.is_ready() {
            self.idle.notify_one();
        }
        if queue.next_due_ns().is_some_and(|due_ns| due_ns < before) {
            self.earlier.notify_one();
        }
        job
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
        let abandoned: Vec<CancelKey> = {
            let in_flight = self.in_flight.borrow();
            let keys = self.keys.borrow();
            let slots = in_flight.iter().zip(keys.iter());
            slots.filter_map(|(performed, key)| performed.and(*key)).collect()
        };
        for key in abandoned {
            self.dial.cancel(key).await;
        }
    }

    /// Closes the books: what is left was due, and had no answer when the drain ended.
    fn settle(&self, ended_ns: u64) -> Meter<W::Audit> {
        let window = self.window();
        let kinds = self.workload.kinds();
        let mut meter = self.meter.replace(Meter::new(
            kinds.len(),
            Profile::new(&[], &self.course),
            &self.course,
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

impl<W: Workload, K, D> std::fmt::Debug for Lane<W, K, D> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lane").field("course", &self.course).finish_non_exhaustive()
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
