//! When requests are due: the run's timeline, arrivals, ramps, and the queue of a thread's
//! terminals. No sockets.

pub mod arrivals;
pub mod due;
pub mod queue;
pub mod ramps;
pub mod slowdowns;
pub mod timeline;
