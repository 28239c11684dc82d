//! What the driver and the loader promise: all tests in one binary, since linking takes longer than
//! most of them.

mod edges;
mod faults;
mod kit;
mod latency;
#[path = "load/main.rs"]
mod load;
mod measures;
mod null;
mod pipelines;
mod schedules;
mod stall;
mod statements;
mod threads;
mod traps;
