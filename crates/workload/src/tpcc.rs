//! TPC-C 5.11: schema, rows, requests, transactions, consistency conditions, input audit.
//!
//! TPC-C-like: results are no TPC results; the deviations from the text are listed in
//! [`deviations`].

mod answers;
pub mod audit;
pub mod blocks;
pub mod bmsql;
pub mod cardinalities;
pub mod consistency;
pub mod constants;
pub mod csv;
pub mod dataset;
pub mod describe;
pub mod deviations;
pub mod faces;
pub mod input;
pub mod kinds;
pub mod names;
pub mod plausible;
mod prepared;
pub mod procedures;
pub mod rows;
pub mod schema;
pub mod spec;
pub mod statements;
pub mod transact;
mod witness;
mod workload;
mod written;

pub use kinds::{KINDS, VERSION};
pub use spec::{SpecError, TpccSpec};
pub use workload::Tpcc;
