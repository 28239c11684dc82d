//! A null server: speaks the protocol, executes nothing, answers every statement of a workload at
//! once with plausible rows. A driver measured against it shows its own cost and ceiling.
//!
//! Sessions are let in without a password. Statements that it was not started with are refused with
//! SQLSTATE 0A000, so that a driver is never flattered by an answer that no server would give. By
//! the simple protocol it knows transaction control, SET, SHOW, DO, CREATE FUNCTION and SELECT of a
//! literal. Results are in binary format only; there is no Describe, no COPY, no TLS.
//!
//! With [`Hold`] it becomes a queueing system of known capacity: each batch holds one of a few
//! workers for a while.

mod account;
mod connection;
mod server;
mod spec;
mod statements;

pub use server::{NullServer, NullStatus};
pub use spec::{Hold, NullError, NullSpec, Spread};
pub use statements::{Known, Respond};
