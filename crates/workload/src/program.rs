//! Transactions that users write, compiled: statements with variables, and what happens between
//! them. Scripts ([`crate::script`]) and mixes ([`crate::mix`]) become programs; this module
//! chooses and runs them.

pub mod build;
pub mod expression;
pub mod functions;
pub mod hash;
pub mod parse;
pub mod programs;
pub mod random;
pub mod runner;
pub mod scan;
pub mod steps;
pub mod value;
pub mod workload;
