//! All tests of the crate in one binary. None of them starts PostgreSQL.

mod broken;
mod outcomes;
mod records;
mod scribe;
mod settled;
