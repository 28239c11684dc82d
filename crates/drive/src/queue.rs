//! The requests of a thread's terminals by due time. Many terminals share few connections: whoever
//! has a free connection takes the request that has been due the longest. No clock, no sockets.
//!
//! A terminal is a number and a counter. Its next request is drawn when the last one ended, which
//! tells when it is due; if that is later, the request is dropped and drawn again then, so that
//! thousands of thinking terminals cost a heap entry each.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use workload::{Timing, Workload};

use crate::course::Window;

/// What the meter must know of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Position of its terminal in this thread.
    pub terminal: usize,
    /// Kind of transaction.
    pub kind: usize,
    /// When the terminal wanted it.
    pub due_ns: u64,
    /// How long the terminal thinks after the answer.
    pub think_ns: u64,
    /// The terminal did not wait for it.
    pub deferred: bool,
    /// It became due within the window, and was counted there.
    pub in_window: bool,
}

/// A request that is due.
#[derive(Debug)]
pub struct Job<R> {
    /// What the meter must know.
    pub head: Head,
    /// What is to be performed.
    pub request: R,
}

/// Requests that became due, of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Since the begin of the warm-up.
    pub run: u64,
    /// Within the window.
    pub window: u64,
}

#[derive(Debug)]
struct Terminal {
    id: u32,
    /// Number of its next request.
    next: u64,
}

/// A terminal whose deferred request found the queue full.
#[derive(Debug)]
struct Parked {
    terminal: usize,
    think_ns: u64,
}

/// The requests of a thread's terminals.
#[derive(Debug)]
pub struct Queue<W: Workload> {
    workload: Arc<W>,
    terminals: Vec<Terminal>,
    /// Due times to come, earliest first.
    later: BinaryHeap<Reverse<(u64, usize)>>,
    /// Due and not taken up, oldest first.
    ready: VecDeque<Job<W::Request>>,
    parked: VecDeque<Parked>,
    deferred: usize,
    deferred_max: usize,
    due: Vec<Due>,
}

impl<W: Workload> Queue<W> {
    /// For the terminals with these numbers. More than `deferred_max` deferred requests in the
    /// queue make terminals wait.
    #[must_use]
    pub fn new(
        workload: Arc<W>,
        terminals: impl Iterator<Item = u32>,
        deferred_max: usize,
    ) -> Self {
        let kinds = workload.kinds().len();
        Self {
            workload,
            terminals: terminals.map(|id| Terminal { id, next: 0 }).collect(),
            later: BinaryHeap::new(),
            ready: VecDeque::new(),
            parked: VecDeque::new(),
            deferred: 0,
            deferred_max,
            due: vec![Due::default(); kinds],
        }
    }

    /// Every terminal begins as if it had just been answered: it thinks, keys, and asks. Thinking
    /// times spread the first requests as they spread the later ones.
    pub fn begin(&mut self, start_ns: u64, window: Window) {
        for terminal in 0..self.terminals.len() {
            let (_, timing) = self.draw(terminal);
            self.schedule(terminal, start_ns + timing.think_ns, start_ns, window);
        }
    }

    /// The request that has been due the longest.
    pub fn take(&mut self, now_ns: u64, window: Window) -> Option<Job<W::Request>> {
        self.promote(now_ns, window);
        let job = self.ready.pop_front()?;
        if job.head.deferred {
            self.deferred -= 1;
            self.unpark(now_ns, window);
        }
        Some(job)
    }

    /// A request ended: its terminal thinks, keys, and asks for the next.
    pub fn answered(&mut self, head: &Head, now_ns: u64, window: Window) {
        if !head.deferred {
            self.promote(now_ns, window);
            self.schedule(head.terminal, now_ns + head.think_ns, now_ns, window);
        }
    }

    /// Moves requests that became due into the queue. Due times after the window never come.
    pub fn promote(&mut self, now_ns: u64, window: Window) {
        while let Some(&Reverse((due_ns, terminal))) = self.later.peek() {
            if due_ns > now_ns || due_ns >= window.until_ns {
                return;
            }
            self.later.pop();
            let (request, timing) = self.draw(terminal);
            self.admit(terminal, due_ns, request, timing, now_ns, window);
        }
    }

    /// Whether a request waits for a connection.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// When the next request that is not due yet will be.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        self.later.peek().map(|Reverse((due_ns, _))| *due_ns)
    }

    /// Counts of what became due, by kind.
    #[must_use]
    pub fn due(&self) -> &[Due] {
        &self.due
    }

    /// At the end: everything that became due before the window ended and was never taken up.
    pub fn left(&mut self, window: Window) -> impl Iterator<Item = Head> {
        self.promote(window.until_ns, window);
        self.ready.iter().map(|job| job.head)
    }

    fn draw(&self, terminal: usize) -> (W::Request, Timing) {
        let Terminal { id, next } = self.terminals[terminal];
        self.workload.request(id, next)
    }

    /// Schedules a terminal that begins to key at `from_ns`.
    fn schedule(&mut self, terminal: usize, from_ns: u64, now_ns: u64, window: Window) {
        let (request, timing) = self.draw(terminal);
        let due_ns = from_ns + timing.keying_ns;
        if due_ns > now_ns || due_ns >= window.until_ns {
            self.later.push(Reverse((due_ns, terminal)));
        } else {
            self.admit(terminal, due_ns, request, timing, now_ns, window);
        }
    }

    /// Counts a request as due and queues it. Behind a deferred one its terminal goes on at once,
    /// which may make its next request due too.
    fn admit(
        &mut self,
        terminal: usize,
        mut due_ns: u64,
        mut request: W::Request,
        mut timing: Timing,
        now_ns: u64,
        window: Window,
    ) {
        loop {
            self.terminals[terminal].next += 1;
            let Timing { kind, think_ns, deferred, .. } = timing;
            let in_window = window.holds(due_ns);
            self.due[kind].run += 1;
            self.due[kind].window += u64::from(in_window);
            let head = Head { terminal, kind, due_ns, think_ns, deferred, in_window };
            // Almost always at the end: only a request that was noticed late goes before others.
            let at = self.ready.iter().rposition(|job| job.head.due_ns <= due_ns);
            self.ready.insert(at.map_or(0, |at| at + 1), Job { head, request });
            if !deferred {
                return;
            }
            self.deferred += 1;
            if self.deferred > self.deferred_max {
                self.parked.push_back(Parked { terminal, think_ns });
                return;
            }
            (request, timing) = self.draw(terminal);
            due_ns += think_ns + timing.keying_ns;
            if due_ns > now_ns || due_ns >= window.until_ns {
                self.later.push(Reverse((due_ns, terminal)));
                return;
            }
        }
    }

    /// Lets waiting terminals go on as far as the queue has room again.
    fn unpark(&mut self, now_ns: u64, window: Window) {
        while self.deferred <= self.deferred_max {
            let Some(Parked { terminal, think_ns }) = self.parked.pop_front() else { return };
            self.schedule(terminal, now_ns + think_ns, now_ns, window);
        }
    }
}
