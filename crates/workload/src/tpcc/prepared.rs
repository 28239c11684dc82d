//! How a statement of TPC-C is prepared: by name, its results in binary format.

use wire::{Kind, Results, Statement};

/// A statement with its SQL and the types of its parameters.
pub(super) fn statement(name: &str, sql: &str, params: &[Kind]) -> Statement {
    Statement {
        name: name.to_owned(),
        sql: sql.to_owned(),
        params: params.to_vec(),
        results: Results::Binary,
    }
}
