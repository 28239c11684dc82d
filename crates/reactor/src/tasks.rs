//! Futures side by side in one: each is polled only when it was woken itself.

use std::{
    fmt,
    future::poll_fn,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Tasks of one word.
const BITS: usize = 64;
/// Turns through all tasks before others of the thread have theirs.
const TURNS_MAX: usize = 8;

/// Futures that run side by side, in whatever loop the one that holds them runs. A panic of one is
/// a panic of all; dropping them ends those that did not.
pub struct Tasks<'a> {
    places: Vec<Option<Task<'a>>>,
    open: usize,
    woken: Arc<Woken>,
}

struct Task<'a> {
    future: Pin<Box<dyn Future<Output = ()> + 'a>>,
    waker: Waker,
}

/// Which tasks were woken, a bit each.
struct Woken {
    words: Box<[AtomicU64]>,
    outer: Mutex<Waker>,
}

impl Woken {
    fn outer(&self) -> MutexGuard<'_, Waker> {
        self.outer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Bit {
    woken: Arc<Woken>,
    at: usize,
}

impl Wake for Bit {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        let bit = 1 << (self.at % BITS);
        // Whoever set the first bit of the word has woken the holder.
        if self.woken.words[self.at / BITS].fetch_or(bit, Ordering::AcqRel) == 0 {
            self.woken.outer().wake_by_ref();
        }
    }
}

impl<'a> Tasks<'a> {
    /// Takes the futures; each is known by its place. None runs before [`Tasks::until`] or
    /// [`Tasks::all`].
    #[must_use]
    pub fn new(futures: impl IntoIterator<Item = Pin<Box<dyn Future<Output = ()> + 'a>>>) -> Self {
        let futures: Vec<_> = futures.into_iter().collect();
        let words = (0..futures.len().div_ceil(BITS)).map(|_| AtomicU64::new(u64::MAX));
        let words = words.collect();
        let woken = Arc::new(Woken { words, outer: Mutex::new(Waker::noop().clone()) });
        let task = |(at, future)| {
            let waker = Waker::from(Arc::new(Bit { woken: Arc::clone(&woken), at }));
            Some(Task { future, waker })
        };
        let places: Vec<_> = futures.into_iter().enumerate().map(task).collect();
        Self { open: places.len(), places, woken }
    }

    /// Runs all until the one at a place has ended.
    pub async fn until(&mut self, at: usize) {
        self.run(|tasks| tasks.places[at].is_none()).await;
    }

    /// Runs all to their ends.
    pub async fn all(&mut self) {
        self.run(|tasks| tasks.open == 0).await;
    }

    async fn run(&mut self, ended: impl Fn(&Self) -> bool) {
        poll_fn(|cx| {
            // Before any bit is read: who sets one afterwards wakes the right holder.
            if !self.woken.outer().will_wake(cx.waker()) {
                self.woken.outer().clone_from(cx.waker());
            }
            for _ in 0..TURNS_MAX {
                let quiet = !self.turn();
                if ended(self) {
                    return Poll::Ready(());
                }
                if quiet {
                    return Poll::Pending;
                }
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Polls every task that was woken, once; `false` if there was none.
    fn turn(&mut self) -> bool {
        let mut any = false;
        for (number, word) in self.woken.words.iter().enumerate() {
            if word.load(Ordering::Relaxed) == 0 {
                continue;
            }
            let mut bits = word.swap(0, Ordering::AcqRel);
            while bits != 0 {
                let at = number * BITS + bits.trailing_zeros() as usize;
                bits &= bits - 1;
                let Some(slot) = self.places.get_mut(at) else { break };
                let Some(task) = slot else { continue };
                any = true;
                let mut context = Context::from_waker(&task.waker);
                if task.future.as_mut().poll(&mut context).is_ready() {
                    *slot = None;
                    self.open -= 1;
                }
            }
        }
        any
    }
}

impl fmt::Debug for Tasks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tasks({} of {})", self.open, self.places.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use std::{
        cell::{Cell, RefCell},
        thread,
        time::Duration,
    };
    use tokio::sync::{Notify, oneshot};

    #[test]
    fn tasks_wake_each_other_and_end_in_any_order() {
        let (count, first, second) = (Cell::new(0), Notify::new(), Notify::new());
        let calls = async {
            for _ in 0..100 {
                first.notified().await;
                count.set(count.get() + 1);
                second.notify_one();
            }
        };
        let answers = async {
            for _ in 0..100 {
                first.notify_one();
                second.notified().await;
            }
        };
        let mut tasks =
            Tasks::new([Box::pin(calls) as Pin<Box<dyn Future<Output = ()>>>, Box::pin(answers)]);
        block_on(tasks.all()).expect("a loop");
        assert_eq!(count.get(), 100);
    }

    #[test]
    fn only_the_woken_are_polled_beyond_one_word_too() {
        const COUNT: usize = 200;
        let polls = RefCell::new(vec![0; COUNT]);
        let (senders, receivers): (Vec<_>, Vec<_>) = (0..COUNT).map(|_| oneshot::channel()).unzip();
        let waiting = receivers.into_iter().enumerate().map(|(at, mut receiver)| {
            let polls = &polls;
            Box::pin(poll_fn(move |cx| {
                polls.borrow_mut()[at] += 1;
                Pin::new(&mut receiver).poll(cx).map(|sent| sent.expect("a sender"))
            })) as Pin<Box<dyn Future<Output = ()>>>
        });
        let mut tasks = Tasks::new(waiting);
        let other = thread::spawn(move || {
            for sender in senders.into_iter().rev() {
                thread::sleep(Duration::from_micros(50));
                sender.send(()).expect("a receiver");
            }
        });
        block_on(tasks.until(150)).expect("a loop");
        assert!(tasks.open >= 1 && tasks.places[150].is_none());
        block_on(tasks.all()).expect("another loop");
        other.join().expect("no panic");
        drop(tasks);
        // Once at first, once when woken, once by chance in the turn of another; what was sent
        // before the first poll needs no second.
        assert!(polls.borrow().iter().all(|polls| (1..=3).contains(polls)), "{polls:?}");
    }

    #[test]
    fn a_task_that_never_rests_leaves_the_others_their_turn() {
        let (sender, receiver) = oneshot::channel();
        let other = thread::spawn(move || {
            thread::sleep(Duration::from_millis(10));
            sender.send(()).expect("a receiver");
        });
        let restless = poll_fn(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let patient = async { receiver.await.expect("a sender") };
        let mut tasks = Tasks::new([
            Box::pin(restless) as Pin<Box<dyn Future<Output = ()>>>,
            Box::pin(patient),
        ]);
        block_on(tasks.until(1)).expect("a loop");
        other.join().expect("no panic");
    }
}
