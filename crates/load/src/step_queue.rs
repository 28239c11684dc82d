//! Which steps are ready, under way and done. Sessions take the ready step that most work waits
//! for, so that the longest chain of a load is never the last to begin.

use std::{
    collections::{BinaryHeap, HashSet},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use super::{
    progress::{LoadState, Phase, Shared},
    report::PhaseReport,
    steps::Step,
};
use drive::{clock::steady_ns, measure::cpu::nanos};

/// How often a session that waits looks whether the load goes on.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The steps of a load.
#[derive(Debug)]
pub(super) struct StepQueue {
    steps: Vec<Step>,
    /// Steps that wait for each step.
    before: Vec<Vec<usize>>,
    /// Work of the longest chain that begins with each step.
    chains: Vec<u64>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    /// Steps that each step still waits for.
    waits: Vec<usize>,
    /// By length of their chains.
    ready: BinaryHeap<(u64, usize)>,
    left: HashSet<usize>,
    spans: Vec<Span>,
}

/// What the sessions did for one phase.
#[derive(Clone, Copy, Debug)]
struct Span {
    phase: Phase,
    from_ns: u64,
    until_ns: u64,
    busy_ns: u64,
}

impl StepQueue {
    /// Of steps, some of which were done before.
    pub(super) fn new(steps: Vec<Step>, done: &HashSet<String>) -> Self {
        let mut before = vec![Vec::new(); steps.len()];
        for (at, step) in steps.iter().enumerate() {
            for &other in &step.after {
                before[other].push(at);
            }
        }
        let is_left = |at: &usize| !done.contains(&steps[*at].name);
        let left: HashSet<usize> = (0..steps.len()).filter(is_left).collect();
        let waits: Vec<usize> = steps
            .iter()
            .map(|step| step.after.iter().filter(|other| left.contains(other)).count())
            .collect();
        let mut chains = vec![0; steps.len()];
        // A step is listed after those that it waits for.
        for at in (0..steps.len()).rev() {
            let next = before[at].iter().map(|&other| chains[other]).max().unwrap_or(0);
            chains[at] = steps[at].cost + next;
        }
        let ready = left.iter().filter(|at| waits[**at] == 0).map(|&at| (chains[at], at)).collect();
        let state = Mutex::new(State { waits, ready, left, spans: Vec::new() });
        Self { steps, before, chains, state, changed: Condvar::new() }
    }

    /// Sums up something of the steps that are left.
    pub(super) fn left(&self, part: impl Fn(&Step) -> u64) -> u64 {
        self.lock().left.iter().map(|&at| part(&self.steps[at])).sum()
    }

    /// Work of the longest chain of steps.
    pub(super) fn longest(&self) -> u64 {
        let left = &self.lock().left;
        left.iter().map(|&at| self.chains[at]).max().unwrap_or(0)
    }

    /// How many steps there are, and how many are left.
    pub(super) fn count(&self) -> (usize, usize) {
        (self.steps.len(), self.lock().left.len())
    }

    /// The next step, waiting until one is ready; `None` when all are done or the load does not
    /// go on.
    pub(super) fn take(&self, shared: &Shared) -> Option<(usize, &Step)> {
        let mut state = self.lock();
        loop {
            if shared.state() != LoadState::Running || state.left.is_empty() {
                return None;
            }
            if let Some((_, at)) = state.ready.pop() {
                return Some((at, &self.steps[at]));
            }
            let waited = self.changed.wait_timeout(state, LOOK_EVERY);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// A step is done that was begun at this time.
    pub(super) fn done(&self, at: usize, from_ns: u64, shared: &Shared) {
        let mut state = self.lock();
        state.left.remove(&at);
        for &other in &self.before[at] {
            state.waits[other] -= 1;
            if state.waits[other] == 0 {
                state.ready.push((self.chains[other], other));
            }
        }
        let until_ns = steady_ns();
        state.note(self.steps[at].phase, from_ns, until_ns);
        if let Some(phase) = state.left.iter().map(|&at| self.steps[at].phase).min() {
            shared.enter(phase);
        }
        drop(state);
        self.changed.notify_all();
    }

    /// What each phase took. They overlap.
    pub(super) fn phases(&self) -> Vec<PhaseReport> {
        let mut spans = self.lock().spans.clone();
        spans.sort_unstable_by_key(|span| span.phase);
        let report = |span: &Span| PhaseReport {
            name: span.phase,
            seconds: nanos(span.until_ns - span.from_ns),
            session_seconds: nanos(span.busy_ns),
        };
        spans.iter().map(report).collect()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, phase: Phase, from_ns: u64, until_ns: u64) {
        let busy_ns = until_ns - from_ns;
        match self.spans.iter_mut().find(|span| span.phase == phase) {
            None => self.spans.push(Span { phase, from_ns, until_ns, busy_ns }),
            Some(span) => {
                span.from_ns = span.from_ns.min(from_ns);
                span.until_ns = span.until_ns.max(until_ns);
                span.busy_ns += busy_ns;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::Action;

    fn step(name: &str, cost: u64, after: &[usize]) -> Step {
        Step {
            name: name.into(),
            phase: Phase::Copy,
            cost,
            after: after.to_vec(),
            action: Action::Sql { sql: String::new(), atomic: true },
        }
    }

    fn steps() -> Vec<Step> {
        vec![step("a", 5, &[]), step("b", 3, &[]), step("c", 9, &[1]), step("d", 1, &[0, 2])]
    }

    fn names(queue: &StepQueue, shared: &Shared) -> Vec<String> {
        let mut names = Vec::new();
        while let Some((at, step)) = queue.take(shared) {
            names.push(step.name.clone());
            queue.done(at, steady_ns(), shared);
        }
        names
    }

    #[test]
    fn the_step_that_most_work_waits_for_comes_first_and_none_before_its_time() {
        let shared = Shared::new(0);
        let queue = StepQueue::new(steps(), &HashSet::new());
        assert_eq!((queue.left(|step| step.cost), queue.count()), (18, (4, 4)));
        assert_eq!(names(&queue, &shared), ["b", "c", "a", "d"]);
        assert_eq!(queue.count(), (4, 0));
    }

    #[test]
    fn what_was_done_before_is_not_done_again_and_not_waited_for() {
        let shared = Shared::new(0);
        let done = ["b".to_owned(), "a".to_owned()].into();
        let queue = StepQueue::new(steps(), &done);
        assert_eq!(queue.left(|step| step.cost), 10);
        assert_eq!(names(&queue, &shared), ["c", "d"]);
    }

    #[test]
    fn nothing_is_handed_out_once_a_load_failed() {
        let shared = Shared::new(0);
        let queue = StepQueue::new(steps(), &HashSet::new());
        shared.fail();
        assert!(queue.take(&shared).is_none());
    }
}
