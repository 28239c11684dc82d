//! What the workloads promise: all tests in one binary, which links once.

#[path = "benchmarksql/main.rs"]
mod benchmarksql;
#[path = "programs/main.rs"]
mod programs;
#[path = "tpcc/main.rs"]
mod tpcc;
