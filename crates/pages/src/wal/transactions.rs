//! What transactions wrote: bytes of WAL by the set of tables whose rows they changed.
//!
//! WAL does not say which transaction of an application a transaction was. Those of one kind change
//! rows of the same tables, so this set stands for the kind. Locks of rows, indexes and what a page
//! is cleaned of on the way do not tell kinds apart: their bytes count, their tables do not.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{
    bytes::Cursor,
    relation::{Fork, Locator},
    version::Major,
    wal::{
        count::Count,
        kind::{HEAP, HEAP2, TRANSACTION},
        open::OpenTransactions,
        record::Record,
        table_sets::{FURTHER, TableSets},
    },
};

const MULTI_INSERT: u8 = 0x50;
/// `INSERT`, `DELETE`, `UPDATE`, `HOT_UPDATE`.
const ROW_CHANGES: [u8; 4] = [0x00, 0x10, 0x20, 0x40];
const COMMIT: u8 = 0x00;
const ABORT: u8 = 0x20;
const COMMIT_PREPARED: u8 = 0x30;
const ABORT_PREPARED: u8 = 0x40;
const HAS_INFO: u8 = 0x80;
const HAS_DATABASE: u32 = 1;
const HAS_SUBTRANSACTIONS: u32 = 1 << 1;
const HAS_RELATIONS: u32 = 1 << 2;
const HAS_INVALIDATIONS: u32 = 1 << 3;
const HAS_TWO_PHASE: u32 = 1 << 4;
const HAS_DROPPED_STATISTICS: u32 = 1 << 8;

/// What transactions, or records of none, wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransactionUse {
    /// Transactions; subtransactions are a part of theirs.
    pub transactions: u64,
    /// Their records.
    pub records: u64,
    /// Bytes of these, images included.
    pub bytes: u64,
    /// Full page images in them.
    pub images: u64,
    /// Bytes of these.
    pub image_bytes: u64,
}

/// Committed transactions that changed rows of the same tables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransactionKind {
    /// The tables, ascending; none: rows of no table were changed.
    pub tables: Vec<Locator>,
    /// What they wrote.
    pub used: TransactionUse,
}

/// All records of a range, by what became of their transactions: each is in one of these.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TransactionSums {
    /// Committed, by the tables whose rows they changed, most bytes first.
    pub committed: Vec<TransactionKind>,
    /// Committed, of further sets of tables than are told apart.
    pub further: TransactionUse,
    /// Rolled back.
    pub rolled_back: TransactionUse,
    /// Neither committed nor rolled back by the end of the range.
    pub unfinished: TransactionUse,
    /// Records of no transaction, e.g. of checkpoints and vacuum.
    pub outside: TransactionUse,
}

/// Follows transactions from record to record.
#[derive(Debug)]
pub(super) struct Transactions {
    major: Major,
    open: OpenTransactions,
    sets: TableSets,
    /// By their set of tables.
    committed: Vec<TransactionUse>,
    rolled_back: TransactionUse,
    outside: TransactionUse,
}

impl Transactions {
    pub(super) fn new(major: Major) -> Self {
        Self {
            major,
            open: OpenTransactions::new(),
            sets: TableSets::new(),
            committed: Vec::new(),
            rolled_back: TransactionUse::default(),
            outside: TransactionUse::default(),
        }
    }

    /// Takes the next record; `table` is the place of what [`changed`] says.
    pub(super) fn add(&mut self, record: &Record<'_>, wrote: Count, table: Option<usize>) {
        let ended = Ended::of(record, self.major);
        let xid = ended.as_ref().map_or(record.head.xid, |ended| ended.xid);
        if xid == 0 {
            self.outside.take(0, wrote);
            return;
        }
        let open = self.open.of(xid);
        open.wrote.add(wrote);
        if let Some(table) = table {
            open.tables = self.sets.with(open.tables, table);
        }
        if let Some(ended) = ended {
            self.end(&ended);
        }
    }

    fn end(&mut self, ended: &Ended) {
        let Some(mut whole) = self.open.end(ended.xid) else { return };
        for xid in &ended.subtransactions {
            let Some(part) = self.open.end(*xid) else { continue };
            whole.wrote.add(part.wrote);
            whole.tables = self.sets.union(whole.tables, part.tables);
        }
        if !ended.is_commit {
            self.rolled_back.take(1, whole.wrote);
            return;
        }
        if self.committed.len() <= whole.tables {
            self.committed.resize(whole.tables + 1, TransactionUse::default());
        }
        self.committed[whole.tables].take(1, whole.wrote);
    }

    /// All of them; `locator` tells a place.
    pub(super) fn sums(&self, locator: impl Fn(usize) -> Locator) -> TransactionSums {
        let mut unfinished = TransactionUse::default();
        self.open.iter().for_each(|open| unfinished.take(1, open.wrote));
        let kinds = self.committed.iter().enumerate();
        let told = kinds.filter(|(set, used)| *set != FURTHER && used.transactions > 0);
        let mut committed: Vec<TransactionKind> = told
            .map(|(set, used)| {
                let places = self.sets.tables(set).iter();
                let mut tables: Vec<Locator> = places.map(|place| locator(*place)).collect();
                tables.sort_unstable();
                TransactionKind { tables, used: *used }
            })
            .collect();
        committed.sort_by(|one, other| {
            other.used.bytes.cmp(&one.used.bytes).then_with(|| one.tables.cmp(&other.tables))
        });
        TransactionSums {
            committed,
            further: self.committed.get(FURTHER).copied().unwrap_or_default(),
            rolled_back: self.rolled_back,
            unfinished,
            outside: self.outside,
        }
    }
}

impl TransactionUse {
    fn take(&mut self, transactions: u64, wrote: Count) {
        self.transactions += transactions;
        self.records += wrote.records;
        self.bytes += wrote.bytes;
        self.images += wrote.images;
        self.image_bytes += wrote.image_bytes;
    }
}

/// The table whose rows a record changes.
pub(super) fn changed(record: &Record<'_>) -> Option<Locator> {
    let info = record.head.info & 0x70;
    let changes = match record.head.manager {
        HEAP => ROW_CHANGES.contains(&info),
        HEAP2 => info == MULTI_INSERT,
        _ => false,
    };
    let mut blocks = record.blocks.iter().filter(|block| changes && block.fork == Fork::Main);
    blocks.next().map(|block| block.locator)
}

/// The end of a transaction.
#[derive(Debug, PartialEq, Eq)]
struct Ended {
    xid: u32,
    is_commit: bool,
    subtransactions: Vec<u32>,
}

impl Ended {
    /// `None`: the record is of something else.
    fn of(record: &Record<'_>, major: Major) -> Option<Self> {
        let kind = record.head.info & 0x70;
        if record.head.manager != TRANSACTION
            || ![COMMIT, ABORT, COMMIT_PREPARED, ABORT_PREPARED].contains(&kind)
        {
            return None;
        }
        let is_commit = kind == COMMIT || kind == COMMIT_PREPARED;
        let mut ended = Self { xid: record.head.xid, is_commit, subtransactions: Vec::new() };
        // What cannot be read of it is left out: its CRC was right, so that none is expected.
        ended.read(record, major);
        Some(ended)
    }

    fn read(&mut self, record: &Record<'_>, major: Major) -> Option<()> {
        let mut rest = Cursor::new(record.data);
        rest.skip(8)?; // when it ended
        let info = if record.head.info & HAS_INFO == 0 { 0 } else { rest.u32()? };
        if info & HAS_DATABASE != 0 {
            rest.skip(8)?;
        }
        if info & HAS_SUBTRANSACTIONS != 0 {
            for _ in 0..rest.u32()? {
                self.subtransactions.push(rest.u32()?);
            }
        }
        let statistics_bytes = if major.number() >= 18 { 16 } else { 12 };
        for (flag, bytes) in [
            (HAS_RELATIONS, 12),
            (HAS_DROPPED_STATISTICS, statistics_bytes),
            (HAS_INVALIDATIONS, 16),
        ] {
            if info & flag != 0 {
                let count = usize::try_from(rest.u32()?).ok()?;
                rest.skip(count.checked_mul(bytes)?)?;
            }
        }
        if info & HAS_TWO_PHASE != 0 {
            self.xid = rest.u32()?;
        }
        Some(())
    }
}
