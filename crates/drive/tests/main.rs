//! What the driver promises: all tests in one binary, since linking takes longer than
//! most of them.

mod edges;
mod faults;
mod hosts;
mod kit;
mod latency;
mod measures;
mod null;
mod pipelines;
mod schedules;
mod stall;
mod statements;
mod threads;
mod traps;
