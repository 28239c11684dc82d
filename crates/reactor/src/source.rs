//! A descriptor whose calls wait until they can succeed.

use std::{
    fmt, io,
    os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd},
    rc::Rc,
    task::{Context, Poll, ready},
};

use rustix::event::epoll::EventFlags;
use tokio::io::unix::AsyncFd;

use crate::thread::{Reactor, Slot};

/// What a source waits for.
///
/// One only: the kernel reports a Unix socket as writable each time the peer has taken data out of
/// it (`unix_write_space`), so whoever waits for both is woken twice by every answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interest {
    /// Something to read.
    Read,
    /// Room to write.
    Write,
}

/// What a call that succeeded has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// Nothing: the next call has to wait, and need not try.
    None,
    /// Perhaps more: the next call tries at once.
    Unknown,
}

/// A descriptor in the loop of the thread that made it: in [`block_on`](crate::block_on)'s, or
/// else in that of tokio's current runtime. It must not block.
pub struct Source<T: AsFd>(Place<T>);

enum Place<T: AsFd> {
    Here(Local<T>),
    Tokio(AsyncFd<Raw<T>>, Interest),
}

struct Local<T: AsFd> {
    inner: T,
    key: usize,
    slot: Rc<Slot>,
    reactor: Rc<Reactor>,
}

impl<T: AsFd> Drop for Local<T> {
    fn drop(&mut self) {
        self.reactor.remove(&self.inner, self.key);
    }
}

struct Raw<T>(T);

impl<T: AsFd> AsRawFd for Raw<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl<T: AsFd> Source<T> {
    /// Begins to watch.
    ///
    /// # Errors
    ///
    /// The kernel cannot watch such a descriptor, or has no room for one more.
    pub fn new(inner: T, interest: Interest) -> io::Result<Self> {
        let Some(reactor) = Reactor::current() else {
            return Ok(Self(Place::Tokio(register(inner, interest)?, interest)));
        };
        let flags = match interest {
            Interest::Read => EventFlags::IN | EventFlags::RDHUP,
            Interest::Write => EventFlags::OUT,
        };
        let (key, slot) = reactor.add(&inner, flags)?;
        Ok(Self(Place::Here(Local { inner, key, slot, reactor })))
    }

    /// What is watched.
    pub fn get_ref(&self) -> &T {
        match &self.0 {
            Place::Here(local) => &local.inner,
            Place::Tokio(watched, _) => &watched.get_ref().0,
        }
    }

    /// Calls when the call may succeed, until it does.
    ///
    /// # Errors
    ///
    /// The call's, except `WouldBlock` and `Interrupted`.
    pub fn poll_io<R>(
        &self,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&T) -> io::Result<(R, Rest)>,
    ) -> Poll<io::Result<R>> {
        loop {
            let result = match &self.0 {
                Place::Here(local) => {
                    ready!(local.slot.poll_ready(cx));
                    let (result, rest) = judge(call(&local.inner));
                    if rest == Rest::None {
                        local.slot.exhausted();
                    }
                    result
                }
                Place::Tokio(watched, interest) => {
                    let mut guard = match interest {
                        Interest::Read => ready!(watched.poll_read_ready(cx))?,
                        Interest::Write => ready!(watched.poll_write_ready(cx))?,
                    };
                    let (result, rest) = judge(call(&guard.get_inner().0));
                    if rest == Rest::None {
                        guard.clear_ready();
                    }
                    result
                }
            };
            if let Some(result) = result {
                return Poll::Ready(result);
            }
        }
    }
}

impl<T: AsFd> fmt::Debug for Source<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fd: BorrowedFd<'_> = self.get_ref().as_fd();
        write!(f, "Source({})", fd.as_raw_fd())
    }
}

fn register<T: AsFd>(inner: T, interest: Interest) -> io::Result<AsyncFd<Raw<T>>> {
    let interest = match interest {
        Interest::Read => tokio::io::Interest::READABLE,
        Interest::Write => tokio::io::Interest::WRITABLE,
    };
    #[allow(unsafe_code, reason = "tokio has no safe way to wait for a descriptor")]
    // SAFETY: `Raw` owns its descriptor, which stays open until `AsyncFd` drops it, and
    // `as_raw_fd` returns that descriptor every time.
    let registered = unsafe { AsyncFd::register_with_interest(Raw(inner), interest) };
    registered.map_err(|refused| refused.into_parts().1)
}

/// The result of a call, unless it has to be made once more, and what it left.
fn judge<R>(result: io::Result<(R, Rest)>) -> (Option<io::Result<R>>, Rest) {
    match result {
        Ok((result, rest)) => (Some(Ok(result)), rest),
        Err(e) if e.kind() == io::ErrorKind::WouldBlock => (None, Rest::None),
        Err(e) if e.kind() == io::ErrorKind::Interrupted => (None, Rest::Unknown),
        Err(e) => (Some(Err(e)), Rest::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block_on;
    use std::{
        future::poll_fn,
        io::{Read, Write},
        os::unix::net::UnixStream,
        thread,
        time::Duration,
    };

    fn pair() -> (UnixStream, UnixStream) {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        ours.set_nonblocking(true).expect("a socket");
        (ours, theirs)
    }

    async fn read(source: &Source<UnixStream>, space: &mut [u8]) -> io::Result<usize> {
        let wanted = space.len();
        poll_fn(|cx| {
            source.poll_io(cx, |mut socket| {
                let read = socket.read(space)?;
                Ok((read, if 0 < read && read < wanted { Rest::None } else { Rest::Unknown }))
            })
        })
        .await
    }

    /// Reads by 4 bytes what the peer wrote before it went, in one edge, to the end.
    async fn to_the_end() {
        let (ours, mut theirs) = pair();
        let source = Source::new(ours, Interest::Read).expect("watched");
        theirs.write_all(b"goodbye").expect("written");
        drop(theirs);
        let mut space = [0; 4];
        let mut seen = Vec::new();
        loop {
            match read(&source, &mut space).await.expect("read") {
                0 => break,
                read => seen.extend_from_slice(&space[..read]),
            }
        }
        assert_eq!(seen, b"goodbye");
    }

    fn in_tokio(future: impl Future<Output = ()>) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(future);
    }

    #[test]
    fn last_words_and_the_end_are_seen_in_both_loops() {
        block_on(to_the_end()).expect("a loop");
        in_tokio(to_the_end());
    }

    /// A write that waits for room, while the peer begins to read later.
    async fn waits_for_room() {
        let (ours, mut theirs) = pair();
        let reader = thread::spawn(move || {
            thread::sleep(Duration::from_millis(20));
            let mut all = Vec::new();
            theirs.read_to_end(&mut all).expect("read");
            all.len()
        });
        let source = Source::new(ours, Interest::Write).expect("watched");
        let mut left = 4_usize << 20;
        while left > 0 {
            let bytes = vec![7; left.min(100_000)];
            let write = |mut socket: &UnixStream| Ok((socket.write(&bytes)?, Rest::Unknown));
            left -= poll_fn(|cx| source.poll_io(cx, write)).await.expect("written");
        }
        drop(source);
        assert_eq!(reader.join().expect("no panic"), 4 << 20);
    }

    #[test]
    fn writing_waits_for_room_in_both_loops() {
        block_on(waits_for_room()).expect("a loop");
        in_tokio(waits_for_room());
    }

    #[test]
    fn a_dropped_source_frees_its_place() {
        block_on(async {
            for _ in 0..10 {
                to_the_end().await;
            }
            let reactor = Reactor::current().expect("the loop");
            let (ours, _theirs) = pair();
            let (key, _slot) = reactor.add(&ours, EventFlags::IN).expect("watched");
            assert_eq!(key, 0);
        })
        .expect("a loop");
    }
}
