//! All tests of the crate in one binary. None of them starts PostgreSQL.

#![allow(clippy::unwrap_used, reason = "what a test takes for granted, it fails on")]

mod broken;
mod outcomes;
mod records;
mod scribe;
mod settled;
mod strangers;
