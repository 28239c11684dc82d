//! PostgreSQL's bytes, 12 to 18, as little-endian machines with 8-byte alignment write them: WAL,
//! `pg_control`, `backup_label`, page headers and checksums, paths of relations. No servers, no
//! Python; whatever the bytes are, nothing here panics or goes on for ever.

mod bytes;
mod crc;
mod error;
mod lsn;
mod version;

pub mod backup_label;
pub mod control;
pub mod page;
pub mod relation;
pub mod repair;
pub mod wal;

pub use crc::crc32c;
pub use error::Error;
pub use lsn::Lsn;
pub use version::Major;
