//! What reading PostgreSQL's bytes promises: all tests in one binary, which links once.

mod control;
mod corpus;
mod fuzz;
mod redo;
mod scanning;
mod transactions;
mod windows;
mod writer;
