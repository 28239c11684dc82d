//! Scripts and mixes: grammar, values, and what is sent, against a session that writes it down.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

mod expressions;
mod mixes;
mod pgbench;
mod scripts;
mod session;
