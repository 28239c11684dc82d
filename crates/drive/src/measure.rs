//! What is counted and timed, and what the driver itself costs.

pub mod counts;
pub mod cpu;
pub mod digest;
pub mod histogram;
pub mod ledger;
pub mod meter;
pub mod seconds;
pub mod statements;
pub mod times;
