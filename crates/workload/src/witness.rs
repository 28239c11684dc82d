//! What a committed request leaves in the database, and how it is found again: so that after a
//! disaster whoever kept account of the answers can say which commits are gone.

use schemars::JsonSchema;
use serde::Serialize;

/// Numbers that tell what requests left apart.
pub const KEY_NUMBERS: usize = 4;

/// What a request leaves once it is committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    /// By which its rows are found.
    pub key: [i64; KEY_NUMBERS],
    /// Rows with this key, if every part of the request found something to do.
    pub rows: u8,
}

impl Witness {
    /// One row.
    #[must_use]
    pub fn row(key: [i64; KEY_NUMBERS]) -> Self {
        Self { key, rows: 1 }
    }
}

/// How the rows of one kind of request are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WitnessQuery {
    /// The kind of transaction.
    pub kind: String,
    /// Returns the key of each row that requests have left since `$1`, in microseconds since
    /// 1970-01-01 00:00: four columns of type `bigint`.
    pub sql: String,
}
