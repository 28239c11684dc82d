//! A thread's loop: polls its future when something woke it, and waits by epoll otherwise.

use std::{
    cell::{Cell, RefCell},
    future::Future,
    io,
    pin::pin,
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use rustix::{
    event::{
        EventfdFlags, Timespec,
        epoll::{self, CreateFlags, Event, EventData, EventFlags},
        eventfd,
    },
    fd::{AsFd, OwnedFd},
    io::Errno,
};
use slab::Slab;

/// Events taken from the kernel at once.
const BATCH: usize = 128;
/// What the kernel calls the bell; sources have the keys of their slots.
const BELL: u64 = u64::MAX;
const NOW: Timespec = Timespec { tv_sec: 0, tv_nsec: 0 };

thread_local! {
    static CURRENT: RefCell<Option<Rc<Reactor>>> = const { RefCell::new(None) };
}

/// What a thread waits for.
pub(crate) struct Reactor {
    epoll: OwnedFd,
    slots: RefCell<Slab<Rc<Slot>>>,
}

/// A descriptor's readiness. Edges are reported once, so it lasts until a call did not find more.
#[derive(Default)]
pub(crate) struct Slot {
    ready: Cell<bool>,
    /// The peer's end and errors are reported once and last for ever.
    closed: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Slot {
    /// Whether a call may succeed; otherwise wakes the task when it may.
    pub(crate) fn poll_ready(&self, cx: &Context<'_>) -> Poll<()> {
        if self.ready.get() || self.closed.get() {
            return Poll::Ready(());
        }
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// A call found nothing more.
    pub(crate) fn exhausted(&self) {
        self.ready.set(false);
    }

    fn report(&self, flags: EventFlags) {
        let ends = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        self.ready.set(true);
        self.closed.set(self.closed.get() || flags.intersects(ends));
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }
}

impl Reactor {
    /// That of the loop which this thread is in.
    pub(crate) fn current() -> Option<Rc<Self>> {
        CURRENT.with_borrow(Option::clone)
    }

    pub(crate) fn add(&self, fd: impl AsFd, flags: EventFlags) -> io::Result<(usize, Rc<Slot>)> {
        let slot = Rc::new(Slot::default());
        let key = self.slots.borrow_mut().insert(Rc::clone(&slot));
        let data = EventData::new_u64(key as u64);
        if let Err(refused) = epoll::add(&self.epoll, fd, data, flags | EventFlags::ET) {
            self.slots.borrow_mut().remove(key);
            return Err(refused.into());
        }
        Ok((key, slot))
    }

    pub(crate) fn remove(&self, fd: impl AsFd, key: usize) {
        // Closing the descriptor would do it too, unless it has a twin.
        let _unknown = epoll::delete(&self.epoll, fd);
        self.slots.borrow_mut().remove(key);
    }

    /// Waits until something is ready, or only looks; tells how many events there are.
    fn wait(&self, events: &mut [Event], timeout: Option<&Timespec>) -> io::Result<usize> {
        match epoll::wait(&self.epoll, events, timeout) {
            Err(Errno::INTR) => Ok(0),
            counted => Ok(counted?),
        }
    }

    fn report(&self, events: &[Event]) {
        let slots = self.slots.borrow();
        for event in events {
            let (data, flags) = (event.data, event.flags);
            // A slot may be another's by now: that one looks once for nothing.
            let slot = usize::try_from(data.u64()).ok().and_then(|key| slots.get(key));
            if let Some(slot) = slot {
                slot.report(flags);
            }
        }
    }
}

/// Wakes the loop, from its own thread or from another.
struct Alarm {
    rung: AtomicBool,
    asleep: AtomicBool,
    bell: OwnedFd,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::SeqCst);
        if self.asleep.load(Ordering::SeqCst) {
            // It fails only when the bell has rung 2^64 times.
            let _full = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }
}

/// Ends the loop's time as the thread's current one, also when the future panics.
struct Entered(Option<Rc<Reactor>>);

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.with_borrow_mut(|current| *current = self.0.take());
    }
}

/// Runs a future to its end in a loop of this thread. Sources that are made meanwhile belong to
/// it, and wake nothing afterwards.
///
/// # Errors
///
/// The kernel has no descriptor left for the loop.
pub fn block_on<F: Future>(future: F) -> io::Result<F::Output> {
    let reactor = Rc::new(Reactor {
        epoll: epoll::create(CreateFlags::CLOEXEC)?,
        slots: RefCell::new(Slab::new()),
    });
    let alarm = Arc::new(Alarm {
        rung: AtomicBool::new(true),
        asleep: AtomicBool::new(false),
        bell: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?,
    });
    // By edges: nobody needs to read how often it rang.
    let by_edge = EventFlags::IN | EventFlags::ET;
    epoll::add(&reactor.epoll, &alarm.bell, EventData::new_u64(BELL), by_edge)?;
    let outer = CURRENT.with_borrow_mut(|current| current.replace(Rc::clone(&reactor)));
    let _entered = Entered(outer);
    let waker = Waker::from(Arc::clone(&alarm));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let nothing = Event { flags: EventFlags::empty(), data: EventData::new_u64(BELL) };
    let mut events = [nothing; BATCH];
    loop {
        if alarm.rung.swap(false, Ordering::SeqCst)
            && let Poll::Ready(output) = future.as_mut().poll(&mut context)
        {
            return Ok(output);
        }
        alarm.asleep.store(true, Ordering::SeqCst);
        let look = alarm.rung.load(Ordering::SeqCst).then_some(&NOW);
        let count = reactor.wait(&mut events, look);
        // Before the reports: whoever wakes this thread from within need not ring the bell.
        alarm.asleep.store(false, Ordering::SeqCst);
        reactor.report(&events[..count?]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        future::{pending, poll_fn},
        panic::{AssertUnwindSafe, catch_unwind},
        thread,
        time::Duration,
    };

    #[test]
    fn a_waker_used_by_another_thread_ends_the_wait() {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            sender.send(7).expect("somebody listens");
        });
        assert_eq!(block_on(receiver).expect("a loop"), Ok(7));
        other.join().expect("no panic");
    }

    #[test]
    fn a_future_that_wakes_itself_is_polled_again() {
        let mut left = 1000;
        let turns = poll_fn(|cx| {
            left -= 1;
            cx.waker().wake_by_ref();
            if left == 0 { Poll::Ready(()) } else { Poll::Pending }
        });
        block_on(turns).expect("a loop");
        assert_eq!(left, 0);
    }

    #[test]
    fn a_loop_is_the_threads_own_and_ends_with_its_future_or_a_panic() {
        assert!(Reactor::current().is_none());
        block_on(async {
            let outer = Reactor::current().expect("the outer loop");
            block_on(async { assert!(!Rc::ptr_eq(&outer, &Reactor::current().expect("inner"))) })
                .expect("a loop");
            assert!(Rc::ptr_eq(&outer, &Reactor::current().expect("the outer loop again")));
        })
        .expect("a loop");
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            block_on(async {
                assert!(Reactor::current().is_none(), "on purpose");
                pending::<()>().await;
            })
        }));
        assert!(panicked.is_err() && Reactor::current().is_none());
    }
}
