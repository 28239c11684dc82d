//! The load driver. Only `clock` reads time. The way from a run to the socket:
//!
//! | step | where | what it does |
//! |---|---|---|
//! | run | `run::Run` | starts the threads, keeps the time, merges what they counted |
//! | thread | `worker::thread::run_worker` | has terminals and connections of one database |
//! | connection | `connection::client::run_client` | takes the request due the longest |
//! | attempts | `connection::retry::until_done` | repeats what may be repeated |
//! | transaction | `workload::Workload::perform` | hands a request to what its workload sends |
//! | its statements | `tpcc::transact::by_face` of `workload` | queues them, reads their answers |
//! | | `tpcc::bmsql::by_kind` | the same, as `BenchmarkSQL` does |
//! | | `program::runner::Runner::run_to_end` | the same for mixes and scripts |
//! | statements' times | `measure::statements::Timed` | a session that times each round trip |
//! | round trip | `wire::Exchange::exchange` | writes the batch, reads the answers |
//!
//! `perform` and `exchange` are methods of those two traits, and nothing else is called so. Of
//! pgbench's own transactions `perform` itself sends the statements.
//! `schedule` says when requests are due, `measure` counts and times them.

pub mod clock;
pub mod connection;
pub mod error;
pub mod hosts;
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
