//! What a copy of what changed needs of a range of WAL: the blocks that it names, and its
//! checkpoints.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    lsn::Lsn,
    relation::{Fork, Locator},
    wal::{record::Record, touch::Touches},
};

/// `RM_XLOG_ID`, and its records of checkpoints.
const XLOG: u8 = 0;
const SHUTDOWN: u8 = 0x00;
const ONLINE: u8 = 0x10;

/// A relation of which WAL names blocks.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NamedRelation {
    /// OID of the tablespace.
    pub tablespace: u32,
    /// OID of the database; 0: shared.
    pub database: u32,
    /// The relation's files' name.
    pub relfilenode: u32,
    /// Blocks of its main fork, each once, in order.
    pub blocks: Vec<u32>,
}

/// A checkpoint's record.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WalCheckpoint {
    /// Where it begins.
    pub lsn: String,
    /// The server was shut down: redo begins at the record itself.
    pub is_shutdown: bool,
}

/// What a range of WAL names.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct WalNamed {
    /// By relation.
    pub relations: Vec<NamedRelation>,
    /// In their order.
    pub checkpoints: Vec<WalCheckpoint>,
}

/// The checkpoints of a range.
#[derive(Clone, Debug, Default)]
pub(super) struct Checkpoints(Vec<(Lsn, bool)>);

impl Checkpoints {
    /// Takes the next record.
    pub(super) fn add(&mut self, record: &Record<'_>) {
        let kind = record.head.info & 0xF0;
        if record.head.manager == XLOG && matches!(kind, SHUTDOWN | ONLINE) {
            self.0.push((record.start, kind == SHUTDOWN));
        }
    }

    /// With the blocks that are touched.
    pub(super) fn named(&self, touches: &Touches) -> WalNamed {
        let mut blocks: BTreeMap<Locator, Vec<u32>> = BTreeMap::new();
        for (locator, _, number, _) in touches.iter().filter(|(_, fork, ..)| *fork == Fork::Main) {
            blocks.entry(locator).or_default().push(number);
        }
        let relations = blocks.into_iter().map(|(locator, mut blocks)| {
            blocks.sort_unstable();
            NamedRelation {
                tablespace: locator.tablespace,
                database: locator.database,
                relfilenode: locator.relfilenode,
                blocks,
            }
        });
        let checkpoints = self
            .0
            .iter()
            .map(|(lsn, is_shutdown)| WalCheckpoint {
                lsn: lsn.to_string(),
                is_shutdown: *is_shutdown,
            })
            .collect();
        WalNamed { relations: relations.collect(), checkpoints }
    }
}
