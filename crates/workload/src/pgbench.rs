//! pgbench's built-in workloads on pgbench's tables: `tpcb` (TPC-B-like), `simple-update` and
//! `select-only`, with the SQL of its scripts, so that either program runs on the other's tables.

mod audit;
mod dataset;
mod describe;
mod request;
mod schema;
mod spec;
mod statements;
mod workload;

pub use audit::PgbenchAudit;
pub use dataset::PgbenchDataset;
pub use describe::describe;
pub use request::Request;
pub use spec::{Kind, PgbenchSpec, VERSION};
pub use workload::Pgbench;
