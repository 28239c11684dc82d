//! What the threads of a run share: its timeline, an early end, connections, progress. Nothing here
//! is written on the measured path more often than once a second and thread.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
};

use tokio::sync::watch;

use crate::{
    connection::outages::{GapResult, Outages},
    schedule::timeline::Timeline,
};

/// From the call that ends the warm-up to the start of the window.
const OPENING_NS: u64 = 20_000_000;

/// An instant at which a run begins, by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instant {
    /// Of this host's steady clock.
    pub steady_ns: u64,
    /// By the calendar of who told it, which need not be this host's.
    pub unix_ns: u64,
}

/// What one thread tells the others, once a second.
#[derive(Debug, Default)]
pub struct Published {
    /// Committed so far, by kind.
    pub committed: Vec<AtomicU64>,
    /// Committed in the last whole second, by kind.
    pub last_second: Vec<AtomicU64>,
    /// Rolled back on purpose.
    pub rolled_back: AtomicU64,
    /// Failed.
    pub failed: AtomicU64,
    /// Repeated after 40001 or 40P01.
    pub retries: AtomicU64,
}

/// What the threads of a run share.
#[derive(Debug)]
pub struct Shared {
    timeline: watch::Sender<Option<Timeline>>,
    /// When the run is to begin, once that is told.
    begin: watch::Sender<Option<Instant>>,
    ready: AtomicBool,
    from_ns: AtomicU64,
    until_ns: AtomicU64,
    stopped: AtomicBool,
    finished: AtomicBool,
    gave_up: Mutex<Option<String>>,
    connected: AtomicUsize,
    alone_since_ns: AtomicU64,
    reconnects: AtomicU64,
    /// Written when a connection is lost or replaced, never while all stand.
    gaps: Mutex<Outages>,
    /// Workers whose terminals have not made all their requests.
    asking: AtomicUsize,
    published: Vec<Published>,
}

impl Shared {
    /// For so many workers and kinds of transactions.
    #[must_use]
    pub fn new(workers: usize, kinds: usize) -> Self {
        let counters = || (0..kinds).map(|_| AtomicU64::new(0)).collect();
        let published =
            || Published { committed: counters(), last_second: counters(), ..Published::default() };
        Self {
            timeline: watch::Sender::new(None),
            begin: watch::Sender::new(None),
            ready: AtomicBool::new(false),
            from_ns: AtomicU64::new(u64::MAX),
            until_ns: AtomicU64::new(u64::MAX),
            stopped: AtomicBool::new(false),
            finished: AtomicBool::new(false),
            gave_up: Mutex::new(None),
            connected: AtomicUsize::new(0),
            alone_since_ns: AtomicU64::new(0),
            reconnects: AtomicU64::new(0),
            gaps: Mutex::default(),
            asking: AtomicUsize::new(workers),
            published: (0..workers).map(|_| published()).collect(),
        }
    }

    /// All connections stand, and when the run begins is to be told.
    pub fn await_begin(&self) -> watch::Receiver<Option<Instant>> {
        self.ready.store(true, Relaxed);
        self.begin.subscribe()
    }

    /// Whether nothing is missing but the instant of its begin.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.ready.load(Relaxed)
    }

    /// Tells when the run is to begin. What is told first holds.
    pub fn tell_begin(&self, at: Instant) {
        self.begin.send_modify(|begin| {
            begin.get_or_insert(at);
        });
    }

    /// Sets the timeline; the warm-up begins.
    pub fn begin(&self, mut timeline: Timeline) {
        let until_ns = timeline.window.until_ns;
        let before = self.until_ns.fetch_min(until_ns, Relaxed);
        timeline.window.until_ns = until_ns.min(before);
        self.from_ns.store(timeline.window.from_ns, Relaxed);
        self.timeline.send_replace(Some(timeline));
    }

    /// Ends the warm-up now: the window begins a little later, so that every thread knows it before
    /// the first request that belongs to it becomes due. Nothing changes once it has begun.
    pub fn open(&self, now_ns: u64) {
        self.open_at(now_ns + OPENING_NS);
    }

    /// Ends the warm-up at an instant to come, unless it ends before.
    pub fn open_at(&self, from_ns: u64) {
        self.timeline.send_modify(|timeline| {
            if let Some(timeline) = timeline {
                timeline.window.from_ns = timeline.window.from_ns.min(from_ns);
                self.from_ns.fetch_min(from_ns, Relaxed);
            }
        });
    }

    /// Ends the run at an instant, now or to come: nothing becomes due from then on, the drain
    /// begins.
    pub fn stop(&self, at_ns: u64) {
        self.stopped.store(true, Relaxed);
        self.end(at_ns);
    }

    /// Ends the run now, because no server can be reached.
    pub fn give_up(&self, now_ns: u64, why: String) {
        self.gave_up.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
        self.end(now_ns);
    }

    /// The terminals of a worker have made all their requests, and all were answered. After the
    /// last worker nothing is left to do: the window ends.
    pub fn exhausted(&self, now_ns: u64) {
        if self.asking.fetch_sub(1, Relaxed) == 1 {
            self.end(now_ns);
        }
    }

    fn end(&self, now_ns: u64) {
        self.until_ns.fetch_min(now_ns, Relaxed);
        self.timeline.send_modify(|timeline| {
            if let Some(timeline) = timeline {
                timeline.window.until_ns = timeline.window.until_ns.min(now_ns);
            }
        });
    }

    /// The timeline, and a wake-up whenever it changes.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<Option<Timeline>> {
        self.timeline.subscribe()
    }

    /// Begin of the window as it stands now; `u64::MAX` before the timeline is set.
    #[must_use]
    pub fn from_ns(&self) -> u64 {
        self.from_ns.load(Relaxed)
    }

    /// End of the window as it stands now; `u64::MAX` before the timeline is set.
    #[must_use]
    pub fn until_ns(&self) -> u64 {
        self.until_ns.load(Relaxed)
    }

    /// Whether somebody asked for an early end.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stopped.load(Relaxed)
    }

    /// Why no server could be reached any more.
    #[must_use]
    pub fn gave_up(&self) -> Option<String> {
        self.gave_up.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The result is ready.
    pub fn finish(&self) {
        self.finished.store(true, Relaxed);
    }

    /// Whether the result is ready.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.finished.load(Relaxed)
    }

    /// A connection was made, before the run begins.
    pub fn connected(&self) {
        self.connected.fetch_add(1, Relaxed);
    }

    /// A lost connection was replaced.
    pub fn replaced(&self, now_ns: u64) {
        self.connected();
        self.reconnects.fetch_add(1, Relaxed);
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).replaced(now_ns);
    }

    /// A connection was lost during the run.
    pub fn lost(&self, now_ns: u64) {
        self.disconnected(now_ns);
        self.gaps.lock().unwrap_or_else(PoisonError::into_inner).lost(now_ns);
    }

    /// A connection is no more.
    pub fn disconnected(&self, now_ns: u64) {
        if self.connected.fetch_sub(1, Relaxed) == 1 {
            self.alone_since_ns.store(now_ns, Relaxed);
        }
    }

    /// How long there has been no connection at all; 0 while there is one.
    #[must_use]
    pub fn alone_ns(&self, now_ns: u64) -> u64 {
        if self.connections() > 0 {
            return 0;
        }
        now_ns.saturating_sub(self.alone_since_ns.load(Relaxed))
    }

    /// Connections that stand.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.connected.load(Relaxed)
    }

    /// Lost connections that were replaced.
    #[must_use]
    pub fn reconnects(&self) -> u64 {
        self.reconnects.load(Relaxed)
    }

    /// Times of the run in which connections were gone.
    #[must_use]
    pub fn gaps(&self, timeline: &Timeline) -> Vec<GapResult> {
        let gaps = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        gaps.result(timeline, self.until_ns())
    }

    /// Counters of the threads.
    #[must_use]
    pub fn published(&self) -> &[Published] {
        &self.published
    }
}
