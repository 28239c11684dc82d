//! Rows of pgbench's tables for the loader.

use serde_json::{Value, json};

use super::{
    schema::{ACCOUNTS, FOREIGN_KEYS, TABLES, TELLERS, wide_accounts},
    spec::{PgbenchSpec, VERSION},
};
use crate::{
    copy::Rows,
    dataset::{Dataset, Growth, Index, Table},
};

/// Accounts of one batch: some hundred kB.
const ACCOUNTS_PER_BATCH: u32 = 5_000;
const BATCHES_PER_COPY: u32 = 5;
/// Batches of branches and tellers are tiny.
const SMALL_BATCHES_PER_COPY: u32 = 1_000;

const BRANCHES_TABLE: usize = 0;
const TELLERS_TABLE: usize = 1;
const ACCOUNTS_TABLE: usize = 2;

/// Tables and rows of one scale. Nothing in the rows is random.
#[derive(Clone, Debug)]
pub struct PgbenchDataset {
    spec: PgbenchSpec,
    tables: Vec<Table>,
}

impl PgbenchDataset {
    /// Of a checked specification.
    #[must_use]
    pub fn new(spec: PgbenchSpec) -> Self {
        let branches = spec.scale.unsigned_abs();
        let table = |(at, one): (usize, &super::schema::Definition)| {
            let per_branch = per_branch(at);
            Table {
                name: one.name.to_owned(),
                columns: one.columns(spec.scale),
                copied: one.copied.to_owned(),
                storage: one.fillfactor.then(|| "fillfactor=100".to_owned()).into_iter().collect(),
                rows: u64::from(one.rows) * u64::from(branches),
                batches: per_branch * branches,
                batches_per_copy: if at == ACCOUNTS_TABLE {
                    BATCHES_PER_COPY
                } else {
                    SMALL_BATCHES_PER_COPY
                },
                disk_bytes: one.disk_bytes * u64::from(branches),
            }
        };
        Self { tables: TABLES.iter().enumerate().map(table).collect(), spec }
    }

    fn account_number(&self, rows: &mut Rows<'_>, number: i64) {
        if wide_accounts(self.spec.scale) {
            rows.sized(|out| out.extend_from_slice(&number.to_be_bytes()));
        } else {
            rows.int(i32::try_from(number).unwrap_or(i32::MAX)); // fits: the scale says so
        }
    }
}

/// Batches of one branch.
fn per_branch(table: usize) -> u32 {
    match table {
        BRANCHES_TABLE | TELLERS_TABLE => 1,
        ACCOUNTS_TABLE => ACCOUNTS / ACCOUNTS_PER_BATCH,
        _ => 0,
    }
}

impl Dataset for PgbenchDataset {
    fn name(&self) -> &'static str {
        "pgbench"
    }

    fn tables(&self) -> &[Table] {
        &self.tables
    }

    fn units(&self) -> u32 {
        self.spec.scale.unsigned_abs()
    }

    fn unit_name(&self) -> &'static str {
        "scale"
    }

    fn growth(&self, table: usize) -> Option<Growth> {
        let batches_per_unit = per_branch(table);
        (batches_per_unit > 0).then_some(Growth { column: None, batches_per_unit })
    }

    fn batch(&self, table: usize, number: u32, out: &mut Vec<u8>) -> u32 {
        assert!(number < self.tables[table].batches, "table {table} has no batch {number}");
        out.clear();
        let mut rows = Rows::new(out);
        let branch = i32::try_from(number / per_branch(table)).map_or(i32::MAX, |n| n + 1);
        match table {
            BRANCHES_TABLE => {
                rows.begin(3);
                rows.int(branch);
                rows.int(0);
                rows.null(); // pgbench leaves this filler out, and that of tellers
                1
            }
            TELLERS_TABLE => {
                for teller in 1..=TELLERS {
                    rows.begin(4);
                    rows.int((branch - 1) * TELLERS + teller);
                    rows.int(branch);
                    rows.int(0);
                    rows.null();
                }
                TELLERS.unsigned_abs()
            }
            _ => {
                let first = i64::from(number) * i64::from(ACCOUNTS_PER_BATCH) + 1;
                for account in first..first + i64::from(ACCOUNTS_PER_BATCH) {
                    rows.begin(4);
                    self.account_number(&mut rows, account);
                    rows.int(branch);
                    rows.int(0);
                    rows.text(b""); // padded with blanks by the server
                }
                ACCOUNTS_PER_BATCH
            }
        }
    }

    fn indexes(&self) -> Vec<Index> {
        let index = |at: usize| {
            let table = &TABLES[at];
            Some(Index {
                name: format!("{}_pkey", table.name),
                table: table.name.to_owned(),
                columns: table.key?.to_owned(),
                unique: true,
                primary: true,
            })
        };
        [ACCOUNTS_TABLE, TELLERS_TABLE, BRANCHES_TABLE].into_iter().filter_map(index).collect()
    }

    fn foreign_keys(&self) -> Vec<String> {
        let all: &[&str] = if self.spec.foreign_keys { &FOREIGN_KEYS } else { &[] };
        all.iter().map(|sql| (*sql).to_owned()).collect()
    }

    fn untouched(&self) -> Option<String> {
        let sql = "SELECT NOT EXISTS (SELECT FROM pgbench_history) \
                   AND NOT EXISTS (SELECT FROM pgbench_branches WHERE bbalance <> 0) \
                   AND NOT EXISTS (SELECT FROM pgbench_accounts WHERE abalance <> 0)";
        Some(sql.to_owned())
    }

    fn record(&self) -> Vec<(&'static str, String)> {
        vec![
            ("version", VERSION.to_string()),
            ("scale", self.spec.scale.to_string()),
            ("foreign_keys", self.spec.foreign_keys.to_string()),
        ]
    }

    fn spec(&self) -> Value {
        json!(self.spec)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dataset(scale: i32) -> PgbenchDataset {
        let spec = json!({"kind": "tpcb", "scale": scale});
        PgbenchDataset::new(PgbenchSpec::from_json(&spec).expect("a specification"))
    }

    #[test]
    fn batches_hold_every_row_of_a_table_once() {
        let dataset = dataset(3);
        let mut out = Vec::new();
        for (at, table) in dataset.tables().iter().enumerate() {
            let batches = 0..table.batches;
            let rows: u64 = batches.map(|n| u64::from(dataset.batch(at, n, &mut out))).sum();
            assert_eq!(rows, table.rows, "{}", table.name);
        }
        assert_eq!(dataset.batch(ACCOUNTS_TABLE, 59, &mut out), 5_000);
        // Fields, length, number of the batch's first account, length, its branch.
        assert_eq!(out[..18], [0, 4, 0, 0, 0, 4, 0, 4, 128, 89, 0, 0, 0, 4, 0, 0, 0, 3]);
    }

    #[test]
    fn account_numbers_are_wide_where_pgbench_makes_them_so() {
        let columns = |scale| dataset(scale).tables()[ACCOUNTS_TABLE].columns.clone();
        assert!(columns(20_000).starts_with("aid int not null"));
        assert!(columns(20_001).starts_with("aid bigint not null"));
        let mut out = Vec::new();
        dataset(20_001).batch(ACCOUNTS_TABLE, 0, &mut out);
        assert_eq!(out[..14], [0, 4, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1]);
    }
}
