//! What was done of a load, in the database itself: a step's row is committed with the step, so
//! that a load that was killed, or whose server was, goes on exactly where it stopped.

use std::collections::{BTreeMap, HashSet};

use serde::{Deserialize, Serialize};
use wire::{Session, Stream};
use workload::made::literal;

use super::strategy::Copies;
use drive::error::RunError;

/// There while a load is not complete.
pub(super) const TABLE: &str = "pgdyno_load_progress";
/// The row that says which load it is.
const BEGUN: &str = "begun";

/// Which load it is, and how it goes about it.
#[derive(Clone, Debug, Deserialize, Serialize, PartialEq, Eq)]
pub(super) struct Begun {
    /// What shapes the data, as `pgdyno_load` will remember it.
    pub(super) record: BTreeMap<String, String>,
    /// The time that loaded rows carry.
    pub(super) loaded_at_unix_s: i64,
    /// How rows are cut into COPYs.
    pub(super) copies: Copies,
    /// Units that were there before.
    pub(super) from_units: u32,
    /// Whether indexes were dropped and are built again.
    pub(super) builds: bool,
}

/// Statements that begin a ledger.
pub(super) fn creation(begun: &Begun) -> Result<Vec<String>, RunError> {
    let text = serde_json::to_string(begun)
        .map_err(|e| RunError::internal(format!("write the ledger: {e}")))?;
    Ok(vec![
        format!("CREATE TABLE {TABLE} (step text PRIMARY KEY, detail text)"),
        format!("INSERT INTO {TABLE} VALUES ('{BEGUN}', {})", literal(&text)),
    ])
}

/// Notes that a step was done.
pub(super) fn note(step: &str) -> String {
    format!("INSERT INTO {TABLE} VALUES ({})", literal(step))
}

/// Reads a ledger: which load, and the steps done.
pub(super) async fn read(
    session: &mut Session<Stream>,
) -> Result<(Begun, HashSet<String>), RunError> {
    let sql = format!("SELECT step, detail FROM {TABLE}");
    let rows =
        session.simple(&sql).await.map_err(|e| RunError::target(&format!("read {TABLE}"), &e))?;
    let mut begun = None;
    let mut done = HashSet::new();
    for row in rows {
        let [Some(step), detail] = row.as_slice() else { continue };
        match detail {
            Some(text) if step == BEGUN => begun = serde_json::from_str(text).ok(),
            _ => {
                done.insert(step.clone());
            }
        }
    }
    let begun = begun.ok_or_else(|| {
        let fact = format!("table {TABLE} does not say which load it is of");
        RunError::spec(fact, Some("Load anew with --drop-ours, or into another database."))
    })?;
    Ok((begun, done))
}
