//! The load driver. Only `clock` reads time. The way from a run to the socket:
//!
//! | step | where | what it does |
//! |---|---|---|
//! | run | `run::Run` | starts the threads, keeps the time, merges what they counted |
//! | thread | `worker::thread::run_worker` | has terminals and connections of one database |
//! | connection | `connection::client::run_client` | takes the request due the longest |
//! | attempts | `until_done` of `connection::retry` | repeats what may be repeated |
//! | transaction | `workload::Workload::perform` | queues statements, reads their answers |
//! | statements' times | `measure::statements` | an `Exchange` around the session's own |
//! | round trip | `Session::exchange` of `wire` | writes the batch, reads the answers |
//!
//! `schedule` says when requests are due, `measure` counts and times them.

pub mod clock;
pub mod connection;
pub mod error;
pub mod measure;
pub mod parts;
pub mod progress;
pub mod result;
pub mod run;
pub mod schedule;
pub mod setup;
pub mod shared;
pub mod spec;
pub mod worker;
