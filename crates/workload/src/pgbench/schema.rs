//! Tables, keys and references as `pgbench -i` creates them (`pgbench.c`, version 18).

/// As for other workloads; 1.5 TB.
pub(super) const SCALE_MAX: i32 = 100_000;
/// Tellers of a branch.
pub(super) const TELLERS: i32 = 10;
/// Accounts of a branch.
pub(super) const ACCOUNTS: u32 = 100_000;
/// From the next scale on accounts are numbered by `bigint` (`SCALE_32BIT_THRESHOLD`).
const SCALE_32BIT: i32 = 20_000;

/// Whether accounts are numbered by `bigint`.
pub(super) fn wide_accounts(scale: i32) -> bool {
    scale > SCALE_32BIT
}

/// A table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definition {
    pub(super) name: &'static str,
    /// `{aid}` stands for the type of account numbers.
    pub(super) columns: &'static str,
    pub(super) copied: &'static str,
    pub(super) key: Option<&'static str>,
    /// Rows of a branch after the load.
    pub(super) rows: u32,
    /// Whether pgbench gives it a fill factor.
    pub(super) fillfactor: bool,
    /// Bytes of the table and its key per branch, as `pg_total_relation_size` says on PostgreSQL
    /// 18 at scale 20.
    pub(super) disk_bytes: u64,
}

/// In an order in which foreign keys can be added, which is not pgbench's.
pub(super) const TABLES: [Definition; 4] = [
    Definition {
        name: "pgbench_branches",
        columns: "bid int not null,bbalance int,filler char(88)",
        copied: "bid, bbalance, filler",
        key: Some("bid"),
        rows: 1,
        fillfactor: true,
        disk_bytes: 2_867,
    },
    Definition {
        name: "pgbench_tellers",
        columns: "tid int not null,bid int,tbalance int,filler char(84)",
        copied: "tid, bid, tbalance, filler",
        key: Some("tid"),
        rows: 10,
        fillfactor: true,
        disk_bytes: 3_277,
    },
    Definition {
        name: "pgbench_accounts",
        columns: "aid {aid} not null,bid int,abalance int,filler char(84)",
        copied: "aid, bid, abalance, filler",
        key: Some("aid"),
        rows: ACCOUNTS,
        fillfactor: true,
        disk_bytes: 15_695_053,
    },
    Definition {
        name: "pgbench_history",
        columns: "tid int,bid int,aid {aid},delta int,mtime timestamp,filler char(22)",
        copied: "tid, bid, aid, delta, mtime",
        key: None,
        rows: 0,
        fillfactor: false,
        disk_bytes: 0,
    },
];

/// As `pgbench -i --foreign-keys`, in its order.
pub(super) const FOREIGN_KEYS: [&str; 5] = [
    "alter table pgbench_tellers add constraint pgbench_tellers_bid_fkey \
     foreign key (bid) references pgbench_branches",
    "alter table pgbench_accounts add constraint pgbench_accounts_bid_fkey \
     foreign key (bid) references pgbench_branches",
    "alter table pgbench_history add constraint pgbench_history_bid_fkey \
     foreign key (bid) references pgbench_branches",
    "alter table pgbench_history add constraint pgbench_history_tid_fkey \
     foreign key (tid) references pgbench_tellers",
    "alter table pgbench_history add constraint pgbench_history_aid_fkey \
     foreign key (aid) references pgbench_accounts",
];

impl Definition {
    /// Columns with their types.
    pub(super) fn columns(&self, scale: i32) -> String {
        let aid = if wide_accounts(scale) { "bigint" } else { "int" };
        self.columns.replace("{aid}", aid)
    }
}
