//! The record while it is written, and the time of each event: one at a time, in one order.

use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::time::{ClockId, clock_gettime};

use crate::event::{Event, Ino};
use crate::record::Writer;

/// Writes events down.
pub(crate) struct Log {
    inner: Mutex<Inner>,
}

struct Inner {
    writer: Writer<File>,
    /// Files of the stock, some of which have several names.
    made: HashSet<Ino>,
    failed: Option<io::Error>,
    /// When the power went; nothing that comes after has happened.
    gone_ns: Option<u64>,
}

/// What became of a record.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// Whether there was no room for all.
    pub(crate) full: bool,
}

impl Log {
    /// Begin a record of at most so many bytes.
    ///
    /// # Errors
    /// It cannot be written.
    pub(crate) fn new(file: File, bytes_max: u64) -> io::Result<Self> {
        let writer = Writer::new(file, bytes_max)?;
        Ok(Self {
            inner: Mutex::new(Inner { writer, made: HashSet::new(), failed: None, gone_ns: None }),
        })
    }

    /// Write an event down, with the time that it is. Should that fail, the record ends here, and
    /// `close` tells why: whoever wrote a file is not to hear of our disk. False: the power is
    /// gone, and the event has not happened.
    pub(crate) fn put(&self, event: &Event) -> bool {
        let mut inner = self.inner();
        if inner.gone_ns.is_some() {
            return false;
        }
        let put = inner.writer.put(now_ns(), event);
        inner.failed = inner.failed.take().or(put.err());
        true
    }

    /// The power goes, now.
    pub(crate) fn cut(&self) {
        let mut inner = self.inner();
        inner.gone_ns = inner.gone_ns.or_else(|| Some(now_ns()));
    }

    /// Whether the power is gone.
    pub(crate) fn is_gone(&self) -> bool {
        self.inner().gone_ns.is_some()
    }

    /// Whether a file of the stock comes for the first time.
    pub(crate) fn is_new(&self, ino: Ino) -> bool {
        self.inner().made.insert(ino)
    }

    /// Whether something was left out already.
    pub(crate) fn is_full(&self) -> bool {
        self.inner().writer.is_full()
    }

    /// Write what waits, and go on; returns the bytes so far.
    ///
    /// # Errors
    /// Some of it could not be written.
    pub(crate) fn flush(&self) -> io::Result<u64> {
        let mut inner = self.inner();
        if let Some(error) = inner.failed.take() {
            return Err(error);
        }
        inner.writer.flush()?;
        Ok(inner.writer.bytes())
    }

    /// From now on it is a user's.
    ///
    /// # Errors
    /// The system says no.
    pub(crate) fn give_to(&self, uid: u32, gid: u32) -> io::Result<()> {
        std::os::unix::fs::fchown(self.inner().writer.get_ref(), Some(uid), Some(gid))
    }

    /// Write the rest, and wait until it lies on the disk.
    ///
    /// # Errors
    /// Some of it could not be written.
    pub(crate) fn close(&self) -> io::Result<Closed> {
        let mut inner = self.inner();
        if let Some(error) = inner.failed.take() {
            return Err(error);
        }
        let full = inner.writer.is_full();
        let ended_ns = inner.gone_ns.unwrap_or_else(now_ns);
        inner.writer.close(ended_ns, &Event::Ended)?;
        inner.writer.get_ref().sync_all()?;
        Ok(Closed { bytes: inner.writer.bytes(), full })
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The monotonic clock, as Python's `time.monotonic_ns` has it.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    part(now.tv_sec) * 1_000_000_000 + part(now.tv_nsec)
}
