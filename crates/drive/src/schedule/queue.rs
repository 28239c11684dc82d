//! The requests of a thread's terminals by due time. Many terminals share few connections: whoever
//! has a free connection takes the request that has been due the longest. No clock, no sockets.
//!
//! A terminal is a counter, and in a closed loop a heap entry of 16 bytes while it thinks. Its next
//! request's timing is drawn when the last one ended, the request itself when a connection takes it
//! up: what waits is a terminal, a number and a due time.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, VecDeque},
    sync::Arc,
};

use workload::{Timing, Workload};

use crate::schedule::{
    arrivals::{Arrivals, ArrivalsSpec, Terminals},
    due::{DueBook, Place},
    ramps::{Profile, Step},
    timeline::{Timeline, Window},
};

/// Number of a request that no run reaches: its think time is the one before the first request.
const BEFORE_FIRST: u64 = 1 << 40;

/// What a queue's requests follow.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// What makes requests come; the rate and the limit of those of all threads.
    pub arrivals: ArrivalsSpec,
    /// Ramps and steps.
    pub steps: Vec<Step>,
    /// Number of the database among those driven at once.
    pub part: u64,
    /// Requests of a terminal, after which it asks no more.
    pub requests_max: Option<u64>,
    /// Deferred requests that may wait before terminals do.
    pub deferred_max: usize,
    /// Requests that may wait in this thread of an open loop.
    pub waiting_max: usize,
    /// What is random follows from it.
    pub seed: u64,
    /// By kind: whether a replica answers it; empty: none is there.
    pub routed: Vec<bool>,
}

/// Role of the server that answers: where there is a replica, some kinds go there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerRole {
    /// The server that the connection names.
    Primary,
    /// One that follows it, and may be behind.
    Replica,
}

impl ServerRole {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Primary, Self::Replica];
}

/// What the meter must know of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Position of its terminal in this thread.
    pub terminal: u32,
    /// Number of its terminal in the run.
    pub id: u32,
    /// Which of its terminal's requests it is, from 0.
    pub number: u64,
    /// Kind of transaction.
    pub kind: usize,
    /// When the terminal wanted it.
    pub due_ns: u64,
    /// How long the terminal had keyed.
    pub keying_ns: u64,
    /// How long the terminal thinks after the answer.
    pub think_ns: u64,
    /// The terminal did not wait for it.
    pub deferred: bool,
    /// Where its due time lies; it was counted there.
    pub place: Place,
}

/// A request that is due and taken up.
#[derive(Debug)]
pub struct Job<R> {
    /// What the meter must know.
    pub head: Head,
    /// What is to be performed.
    pub request: R,
}

/// A request that is due and waits for a connection.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due_ns: u64,
    number: u64,
    terminal: u32,
    kind: u16,
    deferred: bool,
    place: Place,
}

/// A terminal whose next request is due later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Later {
    due_ns: u64,
    terminal: u32,
    kind: u16,
    deferred: bool,
}

/// A terminal whose deferred request found the queue full.
#[derive(Debug)]
struct Parked {
    terminal: u32,
    think_ns: u64,
}

/// Where requests come from.
#[derive(Debug)]
enum Source {
    /// Terminals that think or key, the next to ask first.
    Closed(BinaryHeap<Reverse<Later>>),
    /// Arrivals of their own.
    Open(Arrivals),
}

/// The requests of a thread's terminals.
#[derive(Debug)]
pub struct Queue<W: Workload> {
    workload: Arc<W>,
    terminals: Terminals,
    /// Numbers of their next requests.
    next: Vec<u64>,
    source: Source,
    /// Due and not taken up, oldest first: for the primary, and for the replica.
    ready: [VecDeque<Waiting>; 2],
    parked: VecDeque<Parked>,
    deferred: usize,
    schedule: Schedule,
    profile: Profile,
    /// Terminals that ask no more.
    retired: usize,
    book: DueBook,
}

impl<W: Workload> Queue<W> {
    /// For these terminals.
    ///
    /// # Panics
    ///
    /// For a workload of more than 65536 kinds.
    #[must_use]
    pub fn new(
        workload: Arc<W>,
        terminals: Terminals,
        schedule: Schedule,
        timeline: &Timeline,
    ) -> Self {
        let kinds = workload.kinds().len();
        assert!(u16::try_from(kinds).is_ok(), "a workload has at most 65536 kinds, not {kinds}");
        let source = match schedule.arrivals {
            ArrivalsSpec::Closed {} => Source::Closed(BinaryHeap::new()),
            ArrivalsSpec::Open { per_s, spacing, .. } => {
                let Schedule { seed, part, .. } = schedule;
                Source::Open(Arrivals::new(seed, part, per_s, spacing, terminals))
            }
        };
        Self {
            workload,
            terminals,
            next: vec![0; terminals.count()],
            source,
            ready: [VecDeque::new(), VecDeque::new()],
            parked: VecDeque::new(),
            deferred: 0,
            profile: Profile::new(&schedule.steps, timeline),
            retired: 0,
            book: DueBook::new(kinds, schedule.steps.len(), timeline),
            schedule,
        }
    }

    /// Every terminal of a closed loop begins as if it had just been answered: it thinks, keys, and
    /// asks. Thinking times spread the first requests as they spread the later ones.
    pub fn begin(&mut self, start_ns: u64, window: Window) {
        match &mut self.source {
            Source::Open(arrivals) => return arrivals.advance(&self.profile),
            Source::Closed(later) => later.reserve_exact(self.terminals.count()),
        }
        let terminals = self.terminals;
        for terminal in (0..terminals.all).filter_map(|id| terminals.position(id)) {
            // Of a request of its own: the first one's would be thought twice, which shows in the
            // mean think time of short runs.
            let think_ns = self.workload.timing(self.who(terminal), BEFORE_FIRST).think_ns;
            self.go_on(terminal, start_ns + think_ns, start_ns, window);
        }
    }

    /// The request that has been due the longest, of those that a server of this role answers.
    ///
    /// # Panics
    ///
    /// When the workload draws another kind than before: a bug of the workload.
    pub fn take(
        &mut self,
        role: ServerRole,
        now_ns: u64,
        window: Window,
    ) -> Option<Job<W::Request>> {
        self.promote(now_ns, window);
        let waiting = self.ready[role as usize].pop_front()?;
        if waiting.deferred {
            self.deferred -= 1;
            self.unpark(now_ns, window);
        }
        let (request, timing) = self.workload.request(self.who(waiting.terminal), waiting.number);
        assert_eq!(timing.kind, usize::from(waiting.kind), "a request is a function of its number");
        let Timing { keying_ns, think_ns, .. } = timing;
        Some(Job { head: Head { keying_ns, think_ns, ..self.head(&waiting) }, request })
    }

    /// A request ended: its terminal thinks, keys, and asks for the next.
    pub fn answered(&mut self, head: &Head, now_ns: u64, window: Window) {
        if !head.deferred && self.is_closed() {
            self.promote(now_ns, window);
            self.go_on(head.terminal, now_ns + head.think_ns, now_ns, window);
        }
    }

    /// Moves requests that became due into the queue. Due times after the window never come.
    pub fn promote(&mut self, now_ns: u64, window: Window) {
        while let Some(due_ns) = self.next_due_ns() {
            if due_ns > now_ns || due_ns >= window.until_ns {
                return;
            }
            self.book.noticed(due_ns, now_ns, window);
            match &mut self.source {
                Source::Closed(later) => {
                    if let Some(Reverse(later)) = later.pop() {
                        self.admit(later, now_ns, window);
                    }
                }
                Source::Open(arrivals) => {
                    if let Some(arrival) = arrivals.peek() {
                        arrivals.advance(&self.profile);
                        self.arrive(arrival.terminal, due_ns, window);
                    }
                }
            }
        }
    }

    /// Whether a request waits for a connection with a server of this role.
    #[must_use]
    pub fn is_ready(&self, role: ServerRole) -> bool {
        !self.ready[role as usize].is_empty()
    }

    /// How many wait for any.
    fn waiting(&self) -> usize {
        self.ready.iter().map(VecDeque::len).sum()
    }

    /// Who answers a kind.
    fn role(&self, kind: u16) -> ServerRole {
        let routed = self.schedule.routed.get(usize::from(kind)).copied().unwrap_or(false);
        if routed { ServerRole::Replica } else { ServerRole::Primary }
    }

    /// When the next request that is not due yet will be.
    #[must_use]
    pub fn next_due_ns(&self) -> Option<u64> {
        match &self.source {
            Source::Closed(later) => later.peek().map(|Reverse(later)| later.due_ns),
            Source::Open(arrivals) => arrivals.peek().map(|arrival| arrival.due_ns),
        }
    }

    /// Whether every terminal has made all its requests, and all were taken up.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        self.retired == self.terminals.count() && self.waiting() == 0
    }

    /// Counts of what became due.
    #[must_use]
    pub fn book(&self) -> &DueBook {
        &self.book
    }

    /// At the end: everything that became due before the window ended and was never taken up.
    pub fn left(&mut self, window: Window) -> impl Iterator<Item = Head> {
        self.promote(window.until_ns, window);
        self.ready.iter().flatten().map(|waiting| self.head(waiting))
    }

    fn is_closed(&self) -> bool {
        matches!(self.source, Source::Closed(_))
    }

    /// The number under which the workload knows a terminal.
    fn who(&self, terminal: u32) -> u32 {
        let part = u32::try_from(self.schedule.part).unwrap_or(u32::MAX);
        self.workload.terminal(part, self.terminals.id(terminal), self.terminals.all)
    }

    /// Without its times.
    fn head(&self, waiting: &Waiting) -> Head {
        let &Waiting { due_ns, number, terminal, kind, deferred, place } = waiting;
        Head {
            terminal,
            id: self.who(terminal),
            number,
            kind: kind.into(),
            due_ns,
            keying_ns: 0,
            think_ns: 0,
            deferred,
            place,
        }
    }

    /// Of the next request of a terminal.
    fn timing(&self, terminal: u32) -> Timing {
        let number = self.next[position(terminal)];
        self.workload.timing(self.who(terminal), number)
    }

    /// A terminal begins to key at `from_ns`: waits, or asks at once.
    fn go_on(&mut self, terminal: u32, from_ns: u64, now_ns: u64, window: Window) {
        let Some(later) = self.plan(terminal, from_ns) else { return };
        if later.due_ns > now_ns || later.due_ns >= window.until_ns {
            self.wait(later);
        } else {
            self.admit(later, now_ns, window);
        }
    }

    fn wait(&mut self, later: Later) {
        if let Source::Closed(heap) = &mut self.source {
            heap.push(Reverse(later));
        }
    }

    /// The next request of a terminal that begins to key at `from_ns`; `None`: it asks no more. A
    /// terminal that is not active when its request would be due waits until it is, and begins as
    /// at the start of the run.
    fn plan(&mut self, terminal: u32, from_ns: u64) -> Option<Later> {
        let number = self.next[position(terminal)];
        if self.schedule.requests_max.is_some_and(|most| number >= most) {
            self.retired += 1;
            return None;
        }
        let Timing { kind, keying_ns, think_ns, deferred } = self.timing(terminal);
        let mut due_ns = from_ns + keying_ns;
        if !self.profile.is_level() {
            let level = self.level(terminal);
            while let Some(active_ns) = self.profile.rises(level, due_ns)
                && active_ns > due_ns
            {
                due_ns = active_ns + think_ns + keying_ns;
                if due_ns == active_ns {
                    break;
                }
            }
            self.profile.rises(level, due_ns)?;
        }
        let kind = narrow(kind);
        Some(Later { due_ns, terminal, kind, deferred })
    }

    /// The factor from which on a terminal is active: half of `factor * terminals` rounds up.
    fn level(&self, terminal: u32) -> f64 {
        (f64::from(self.terminals.id(terminal)) + 0.5) / f64::from(self.terminals.all)
    }

    /// Counts a request as due and queues it. Behind a deferred one its terminal goes on at once,
    /// which may make its next request due too.
    fn admit(&mut self, mut later: Later, now_ns: u64, window: Window) {
        loop {
            let Later { due_ns, terminal, kind, deferred } = later;
            let think_ns = if deferred { self.timing(terminal).think_ns } else { 0 };
            let number = self.count(terminal);
            let place = DueBook::place(due_ns, window, &self.profile);
            self.book.add(kind.into(), due_ns, place, false);
            // Almost always at the end: only a request that was noticed late goes before others.
            let role = self.role(kind) as usize;
            let ready = &mut self.ready[role];
            let at = ready.iter().rposition(|waiting| waiting.due_ns <= due_ns);
            let waiting = Waiting { due_ns, number, terminal, kind, deferred, place };
            ready.insert(at.map_or(0, |at| at + 1), waiting);
            if !deferred {
                return;
            }
            self.deferred += 1;
            if self.deferred > self.schedule.deferred_max {
                self.parked.push_back(Parked { terminal, think_ns });
                return;
            }
            let Some(next) = self.plan(terminal, due_ns + think_ns) else { return };
            if next.due_ns > now_ns || next.due_ns >= window.until_ns {
                self.wait(next);
                return;
            }
            later = next;
        }
    }

    /// Counts an arrival of an open loop and queues it, if there is room.
    fn arrive(&mut self, terminal: u32, due_ns: u64, window: Window) {
        let kind = self.timing(terminal).kind;
        let number = self.count(terminal);
        let place = DueBook::place(due_ns, window, &self.profile);
        let is_skipped = self.waiting() >= self.schedule.waiting_max;
        self.book.add(kind, due_ns, place, is_skipped);
        if !is_skipped {
            let kind = narrow(kind);
            let deferred = false;
            let waiting = Waiting { due_ns, number, terminal, kind, deferred, place };
            let role = self.role(kind) as usize;
            self.ready[role].push_back(waiting);
        }
    }

    /// Number of a terminal's next request, which is used up.
    fn count(&mut self, terminal: u32) -> u64 {
        let next = &mut self.next[position(terminal)];
        *next += 1;
        *next - 1
    }

    /// Lets waiting terminals go on as far as the queue has room again.
    fn unpark(&mut self, now_ns: u64, window: Window) {
        while self.deferred <= self.schedule.deferred_max {
            let Some(Parked { terminal, think_ns }) = self.parked.pop_front() else { return };
            self.go_on(terminal, now_ns + think_ns, now_ns, window);
        }
    }
}

fn position(terminal: u32) -> usize {
    terminal as usize
}

/// `new` has checked that all fit.
fn narrow(kind: usize) -> u16 {
    u16::try_from(kind).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `docs/concepts/arrivals.md` says so; a hundred thousand terminals are 2.4 MB.
    #[test]
    fn terminals_cost_a_few_bytes() {
        assert_eq!(size_of::<Reverse<Later>>(), 16);
        assert_eq!(size_of::<Waiting>(), 32);
    }
}
