//! The only file that reads time. Everything else is told, so that tests can run on virtual time.

use std::{
    future::{Future, pending, poll_fn},
    hint::spin_loop,
    io,
    time::Duration,
};

use nix::{
    sys::{
        time::TimeSpec,
        timerfd::{ClockId as TimerClock, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags},
    },
    time::{ClockId, clock_gettime},
};
use reactor::{Interest, Rest, Source};
use tokio::time::{Instant, sleep_until};

const SECOND_NS: u64 = 1_000_000_000;

/// Two clocks: a steady one that spans are measured with, and the calendar's.
pub trait Clock: 'static {
    /// Nanoseconds of the steady clock since a point that all threads of the process share.
    fn now_ns(&self) -> u64;

    /// Nanoseconds since 1970-01-01 00:00 UTC.
    fn unix_ns(&self) -> u64;

    /// Returns when the steady clock shows `at_ns` or later. One sleeper at a time.
    fn sleep_until(&self, at_ns: u64) -> impl Future<Output = ()>;

    /// A clock that shows the same, with a sleeper of its own.
    ///
    /// # Errors
    ///
    /// The kernel has no timer left.
    fn another(&self) -> io::Result<Self>
    where
        Self: Sized;

    /// Does nothing but look at the time until it is `at_ns`.
    fn spin_until(&self, at_ns: u64) {
        while self.now_ns() < at_ns {
            spin_loop();
        }
    }
}

/// The machine's clocks. Sleeps by a timer of the kernel of its own: tokio's timers wake up to a
/// millisecond late, which would count as response time of every request that was waited for.
#[derive(Debug)]
pub struct SystemClock {
    timer: Source<TimerFd>,
}

impl SystemClock {
    /// A clock for tasks of the current loop: the reactor's, or tokio's.
    ///
    /// # Errors
    ///
    /// The kernel has no timer left.
    pub fn new() -> io::Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(TimerClock::CLOCK_MONOTONIC, flags)?;
        Ok(Self { timer: Source::new(timer, Interest::Read)? })
    }

    async fn expired(&self) -> io::Result<()> {
        let read = |timer: &TimerFd| Ok((timer.wait().map_err(io::Error::from)?, Rest::None));
        poll_fn(|cx| self.timer.poll_io(cx, read)).await
    }
}

impl Clock for SystemClock {
    fn now_ns(&self) -> u64 {
        steady_ns()
    }

    fn unix_ns(&self) -> u64 {
        read(ClockId::CLOCK_REALTIME)
    }

    fn another(&self) -> io::Result<Self> {
        Self::new()
    }

    async fn sleep_until(&self, at_ns: u64) {
        while self.now_ns() < at_ns {
            let at = TimeSpec::from_duration(Duration::from_nanos(at_ns));
            let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
            let armed = self.timer.get_ref().set(Expiration::OneShot(at), flags);
            if armed.is_err() || self.expired().await.is_err() {
                // A timer that was once created does not fail; if it did, its owner must not spin.
                pending::<()>().await;
            }
        }
    }
}

/// The machine's steady clock, as [`SystemClock::now_ns`] shows it.
#[must_use]
pub fn steady_ns() -> u64 {
    read(ClockId::CLOCK_MONOTONIC)
}

/// Both clocks exist on every Linux and neither shows a time before its zero.
fn read(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).map(Duration::from).unwrap_or_default();
    time.as_secs() * SECOND_NS + u64::from(time.subsec_nanos())
}

/// Tokio's clock: virtual while a test has paused it. Its calendar begins in 2001.
#[derive(Clone, Debug)]
pub struct TokioClock {
    start: Instant,
}

impl TokioClock {
    const START_UNIX_NS: u64 = 1_000_000_000 * SECOND_NS;

    /// A clock that shows 0 now.
    #[must_use]
    pub fn new() -> Self {
        Self { start: Instant::now() }
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn unix_ns(&self) -> u64 {
        Self::START_UNIX_NS + self.now_ns()
    }

    fn another(&self) -> io::Result<Self> {
        Ok(self.clone())
    }

    /// Virtual time stands still while nobody sleeps.
    fn spin_until(&self, _at_ns: u64) {}

    async fn sleep_until(&self, at_ns: u64) {
        sleep_until(self.start + Duration::from_nanos(at_ns)).await;
    }
}
