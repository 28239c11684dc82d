//! What is driven: schemas, rows from a seed, transactions, consistency conditions. No sockets, no
//! clock: everything random is a function of (seed, terminal, sequence number), and the time of an
//! order comes in as an argument.

pub mod answers;
pub mod catalogue;
pub mod chi_square;
pub mod copy;
pub mod csv;
pub mod dataset;
pub mod description;
pub mod digest;
pub mod draw;
pub mod made;
pub mod mix;
pub mod nurand;
pub mod permute;
pub mod pgbench;
pub mod plausible;
pub mod program;
pub mod script;
pub mod spec;
pub mod tpcc;
pub mod witness;
pub mod workload;
pub mod written;

pub use workload::{Audit, AuditLine, Outcome, Timing, Workload};
