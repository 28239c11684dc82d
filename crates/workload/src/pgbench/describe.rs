//! A built-in workload of pgbench, described.

use crate::{
    dataset::{Dataset, Index, Table},
    description::{Condition, Description, Deviation, LoadCheck, PreparedSql, loaded},
    witness::WitnessQuery,
    workload::Workload,
};

use super::{
    dataset::PgbenchDataset,
    spec::{Kind, PgbenchSpec, VERSION},
    statements,
    workload::Pgbench,
};

/// The workload for plans, reports and checks.
#[must_use]
pub fn describe(spec: &PgbenchSpec) -> Description {
    let pgbench = Pgbench::new(spec.clone());
    let dataset = PgbenchDataset::new(spec.clone());
    let (tables, disk_bytes_estimate) = loaded(&dataset);
    let check = |table: &Table| LoadCheck::rows(&table.name, table.rows);
    Description {
        name: spec.kind.name().to_owned(),
        version: VERSION,
        kinds: pgbench.kinds().to_vec(),
        mix: [(spec.kind.name().to_owned(), 1.0)].into(),
        statements: PreparedSql::of(pgbench.statements()),
        tables,
        indexes: dataset.indexes().iter().map(Index::ddl).collect(),
        conditions: conditions(spec.kind),
        witnesses: witnesses(spec.kind),
        writes: statements::writes(spec.kind).into_iter().collect(),
        load_checks: dataset.tables().iter().map(check).collect(),
        deviations: deviations(),
        disk_bytes_estimate,
    }
}

/// Title and SQL of what holds after the load and after any run of the workload. Each query returns
/// the rows that violate it. History must be whole: pgbench empties it when it starts without `-n`.
const CONDITIONS: [(&str, &str); 6] = [
    (
        "every branch has 10 tellers and 100000 accounts",
        "SELECT bid, tellers, accounts FROM pgbench_branches \
         FULL JOIN (SELECT bid, count(*) AS tellers FROM pgbench_tellers GROUP BY bid) AS t \
         USING (bid) \
         FULL JOIN (SELECT bid, count(*) AS accounts FROM pgbench_accounts GROUP BY bid) AS a \
         USING (bid) WHERE (tellers, accounts) IS DISTINCT FROM (10, 100000)",
    ),
    (
        "ABALANCE is the sum of DELTA of the account",
        "SELECT aid, abalance, delta FROM pgbench_accounts \
         FULL JOIN (SELECT aid, sum(delta) AS delta FROM pgbench_history GROUP BY aid) AS h \
         USING (aid) WHERE abalance IS DISTINCT FROM coalesce(delta, 0)",
    ),
    (
        "the sums of ABALANCE and of DELTA are the same",
        "SELECT a, h FROM (SELECT coalesce(sum(abalance), 0) AS a FROM pgbench_accounts) AS x, \
         (SELECT coalesce(sum(delta), 0) AS h FROM pgbench_history) AS y WHERE a <> h",
    ),
    (
        "TBALANCE is the sum of DELTA of the teller",
        "SELECT tid, tbalance, delta FROM pgbench_tellers \
         FULL JOIN (SELECT tid, sum(delta) AS delta FROM pgbench_history GROUP BY tid) AS h \
         USING (tid) WHERE tbalance IS DISTINCT FROM coalesce(delta, 0)",
    ),
    (
        "BBALANCE is the sum of DELTA of the branch",
        "SELECT bid, bbalance, delta FROM pgbench_branches \
         FULL JOIN (SELECT bid, sum(delta) AS delta FROM pgbench_history GROUP BY bid) AS h \
         USING (bid) WHERE bbalance IS DISTINCT FROM coalesce(delta, 0)",
    ),
    (
        "the sums of ABALANCE, TBALANCE and BBALANCE are the same",
        "SELECT a, t, b FROM (SELECT sum(abalance) AS a FROM pgbench_accounts) AS x, \
         (SELECT sum(tbalance) AS t FROM pgbench_tellers) AS y, \
         (SELECT sum(bbalance) AS b FROM pgbench_branches) AS z \
         WHERE (a, t) IS DISTINCT FROM (t, b)",
    ),
];

/// Those that the workload keeps.
fn conditions(kind: Kind) -> Vec<Condition> {
    let count = match kind {
        Kind::Tpcb => 6,
        Kind::SimpleUpdate => 3,
        Kind::SelectOnly => 1,
    };
    let condition = |((title, sql), number): (&(&str, &str), u32)| Condition {
        number,
        title: (*title).to_owned(),
        sql: (*sql).to_owned(),
    };
    CONDITIONS[..count].iter().zip(1..).map(condition).collect()
}

/// Every transaction that changes something adds a line to the history, which is empty before the
/// first: two with the same numbers are two lines.
fn witnesses(kind: Kind) -> Vec<WitnessQuery> {
    let sql = "SELECT tid::bigint, bid::bigint, aid::bigint, delta::bigint FROM pgbench_history \
               WHERE $1::bigint IS NOT NULL";
    match kind {
        Kind::SelectOnly => Vec::new(),
        Kind::Tpcb | Kind::SimpleUpdate => {
            vec![WitnessQuery { kind: kind.name().to_owned(), sql: sql.to_owned() }]
        }
    }
}

fn deviations() -> Vec<Deviation> {
    let line = |what: &str, why: &str| Deviation::new(what, why, "pgbench");
    vec![
        line(
            "random numbers are uniform as pgbench's, but other values",
            "a request is a function of (seed, terminal, number)",
        ),
        line(
            "a statement that finds no row, or several, fails the transaction",
            "a database of another scale must not look fast",
        ),
        line("history is not emptied before a run", "the conditions compare it with the balances"),
    ]
}
