//! Bytes by what became of transactions, and by the tables that they changed: crafted records of
//! all majors.

#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use pages::{
    Lsn,
    wal::{TransactionSums, TransactionUse},
};

use crate::{
    windows::Files,
    writer::{Body, HEAP, Writer},
};

const MIB: u32 = 1 << 20;
const TRANSACTION: u8 = 1;
const HEAP2: u8 = 9;
const BTREE: u8 = 11;
const COMMIT: u8 = 0x00;
const PREPARE: u8 = 0x10;
const ABORT: u8 = 0x20;
const COMMIT_PREPARED: u8 = 0x30;

/// WAL that is written record by record.
struct Log(Writer);

impl Log {
    fn of(major: u16) -> Self {
        Self(Writer::new(major, MIB, 8192))
    }

    /// A record that changes a relation's block.
    fn change(&mut self, xid: u32, manager: u8, info: u8, relation: u32) {
        self.0.xid = xid;
        let body = Body::default().block(0, 0, relation, 1, b"abc", None);
        self.0.record(manager, info, &body.data(b"main"));
    }

    /// A record of a transaction's end, or of none.
    fn transaction(&mut self, xid: u32, info: u8, data: &[u8]) {
        self.0.xid = xid;
        self.0.record(TRANSACTION, info, &Body::default().data(data));
    }

    fn sums(&self, test: &str) -> TransactionSums {
        let files = Files::of(test, &self.0, &self.0.pages());
        let all = files.read(Lsn(self.0.begin), None).unwrap();
        let sums = all.transactions;
        let parts = [sums.further, sums.rolled_back, sums.unfinished, sums.outside];
        let whole = sums.committed.iter().map(|one| one.used).chain(parts);
        let (mut records, mut bytes) = (0, 0);
        for TransactionUse { records: more, bytes: of, .. } in whole {
            records += more;
            bytes += of;
        }
        assert_eq!((records, bytes), (all.records, all.record_bytes));
        sums
    }
}

/// Transactions, records and tables of each kind.
fn committed(sums: &TransactionSums) -> Vec<(u64, u64, Vec<u32>)> {
    let tables = |one: &pages::wal::TransactionKind| {
        one.tables.iter().map(|table| table.relfilenode).collect()
    };
    let kinds = sums.committed.iter();
    kinds.map(|one| (one.used.transactions, one.used.records, tables(one))).collect()
}

fn counts(of: TransactionUse) -> (u64, u64) {
    (of.transactions, of.records)
}

/// Numbers as a record's data.
fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|one| one.to_le_bytes()).collect()
}

#[test]
fn transactions_of_one_kind_change_rows_of_the_same_tables() {
    let mut log = Log::of(18);
    // Two at once, with their records in turns.
    for (xid, info) in [(1, 0x40), (2, 0x20), (1, 0x00), (2, 0x80)] {
        log.change(xid, HEAP, info, if info & 0x70 == 0 { 11 } else { 10 });
    }
    log.change(1, BTREE, 0, 90); // an index is no table of its own
    log.change(1, HEAP, 0x60, 12); // nor is a lock a change
    log.change(1, HEAP2, 0x10, 13); // or what is cleaned up on the way
    log.transaction(1, COMMIT, &words(&[0, 0]));
    log.transaction(2, COMMIT, &words(&[0, 0]));
    log.change(3, HEAP2, 0x50, 12);
    log.transaction(3, COMMIT, &words(&[0, 0]));
    log.change(4, HEAP, 0x10, 10);
    log.transaction(4, ABORT, &words(&[0, 0]));
    log.change(5, HEAP, 0x10, 10);
    log.change(0, HEAP2, 0x40, 10);
    log.transaction(6, COMMIT, &words(&[0, 0]));
    let sums = log.sums("kinds");
    let kinds = [(2, 9, vec![10, 11]), (1, 2, vec![12]), (1, 1, vec![])];
    assert_eq!(committed(&sums), kinds);
    assert_eq!(
        [sums.rolled_back, sums.unfinished, sums.outside, sums.further].map(counts),
        [(1, 2), (1, 1), (0, 1), (0, 0)]
    );
}

/// Numbers of transactions that are open together may end in the same bits.
#[test]
fn transactions_far_apart_are_told_apart() {
    let mut log = Log::of(18);
    let far = [5, 5 + 512, 5 + 8192, u32::MAX];
    for (table, round) in [(10, 0), (11, 1)] {
        for (at, xid) in far.iter().enumerate() {
            log.change(*xid, HEAP, 0, table);
            if at == round {
                log.transaction(*xid, COMMIT, &words(&[0, 0]));
            }
        }
    }
    let sums = log.sums("far");
    assert_eq!(committed(&sums), [(1, 3, vec![10, 11]), (1, 2, vec![10])]);
    assert_eq!(counts(sums.unfinished), (3, 5));
}

/// A subtransaction is a part of its transaction, unless it was rolled back before.
#[test]
fn subtransactions_are_counted_with_theirs() {
    let mut log = Log::of(12);
    for (xid, table) in [(1, 10), (2, 11), (3, 12)] {
        log.change(xid, HEAP, 0, table);
    }
    log.transaction(3, ABORT, &words(&[0, 0]));
    log.transaction(1, COMMIT | 0x80, &words(&[0, 0, 1 << 1, 2, 2, 4]));
    let sums = log.sums("subtransactions");
    assert_eq!(committed(&sums), [(1, 3, vec![10, 11])]);
    assert_eq!((counts(sums.rolled_back), counts(sums.unfinished)), ((1, 2), (0, 0)));
}

/// The record of its end is another session's: it names the transaction behind lists whose items
/// differ in size by major.
#[test]
fn prepared_transactions_end_by_their_own_number() {
    for (major, item_words) in [(12, 0), (14, 0), (15, 3), (17, 3), (18, 4)] {
        let mut log = Log::of(major);
        log.change(7, HEAP, 0, 10);
        log.change(8, HEAP, 0, 11);
        log.transaction(7, PREPARE, &[0; 40]);
        let statistics = if item_words == 0 { 0 } else { 1 << 8 };
        let mut data = vec![0, 0, 1 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 4 | statistics];
        data.extend([5, 1663]); // the database
        data.extend([1, 8]); // a subtransaction
        data.extend([1, 1663, 5, 70]); // a relation whose files go
        data.extend([2].iter().filter(|_| item_words > 0)); // statistics that go
        data.extend(vec![99; 2 * item_words]);
        data.extend([1, 0, 0, 0, 0]); // an invalidation
        data.push(7);
        log.transaction(0, COMMIT_PREPARED | 0x80, &words(&data));
        let sums = log.sums("prepared");
        assert_eq!(committed(&sums), [(1, 4, vec![10, 11])], "PostgreSQL {major}");
        assert_eq!(counts(sums.outside), (0, 0));
    }
}

/// The record of an end may say less than it announces: nothing is read beyond it.
#[test]
fn a_short_end_is_an_end() {
    let mut log = Log::of(18);
    log.change(1, HEAP, 0, 10);
    log.transaction(1, COMMIT | 0x80, &words(&[0, 0, 1 << 1, u32::MAX]));
    log.change(2, HEAP, 0, 10);
    log.transaction(2, COMMIT | 0x80, &words(&[0, 0, 1 << 2, u32::MAX]));
    assert_eq!(committed(&log.sums("short")), [(2, 4, vec![10])]);
}

/// DDL makes sets without end: beyond what is told apart they are counted together.
#[test]
fn sets_of_tables_without_end_are_counted_together() {
    let mut log = Log::of(18);
    for table in 1..=16_390 {
        log.change(table, HEAP, 0, table);
        log.transaction(table, COMMIT, &words(&[0, 0]));
    }
    let sums = log.sums("further");
    assert_eq!((sums.committed.len(), counts(sums.further)), (16_382, (8, 16)));
}
