//! The loop of a measured thread: [`block_on`] waits by epoll for [`Source`]s and polls one future,
//! in which [`Tasks`] run side by side. It has no timers, no I/O driver to share with other threads
//! and no queue between tasks: an answer that arrives costs one wait, one bit and one poll.
//!
//! A source that is made outside of such a loop waits in tokio's, so that sessions work in both.

mod source;
mod tasks;
mod thread;

pub use source::{Interest, Rest, Source};
pub use tasks::Tasks;
pub use thread::block_on;
