//! A built-in workload of pgbench as JSON, in the shape that all workloads have.

use serde_json::{Value, json};

use crate::workload::Workload;

use super::{
    dataset::PgbenchDataset,
    spec::{Kind, PgbenchSpec, VERSION},
    workload::Pgbench,
};
use crate::{dataset::Dataset, spec::SpecError};

/// The workload as JSON.
///
/// # Errors
///
/// As [`PgbenchSpec::from_json`].
pub fn describe(spec: &Value) -> Result<Value, SpecError> {
    let spec = PgbenchSpec::from_json(spec)?;
    let pgbench = Pgbench::new(spec.clone());
    let dataset = PgbenchDataset::new(spec.clone());
    let table = |table: &crate::dataset::Table| {
        let ddl = table.ddl(&[]);
        json!({"name": table.name, "rows": table.rows, "ddl": ddl})
    };
    let tables: Vec<Value> = dataset.tables().iter().map(table).collect();
    let statement = |one: &wire::Statement| json!({"name": one.name, "sql": one.sql});
    let statements: Vec<Value> = pgbench.statements().iter().map(statement).collect();
    let check = |table: &crate::dataset::Table| {
        let sql = format!("SELECT count(*) FROM {}", table.name);
        json!({"name": format!("rows of {}", table.name), "sql": sql, "expected": table.rows})
    };
    let checks: Vec<Value> = dataset.tables().iter().map(check).collect();
    let bytes: u64 = dataset.tables().iter().map(|table| table.disk_bytes).sum();
    let indexes: Vec<String> = dataset.indexes().iter().map(crate::dataset::Index::ddl).collect();
    Ok(json!({
        "name": spec.kind.name(),
        "version": VERSION,
        "spec": spec,
        "kinds": pgbench.kinds(),
        "mix": {(spec.kind.name()): 1.0},
        "statements": statements,
        "tables": tables,
        "indexes": indexes,
        "conditions": conditions(spec.kind),
        "load_checks": checks,
        "deviations": deviations(),
        "disk_bytes_estimate": bytes,
    }))
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
fn conditions(kind: Kind) -> Vec<Value> {
    let count = match kind {
        Kind::Tpcb => 6,
        Kind::SimpleUpdate => 3,
        Kind::SelectOnly => 1,
    };
    let condition = |((title, sql), number): (&(&str, &str), u32)| {
        let (title, sql) = (*title, *sql);
        json!({"number": number, "title": title, "sql": sql})
    };
    CONDITIONS[..count].iter().zip(1..).map(condition).collect()
}

fn deviations() -> Value {
    let line = |what: &str, why: &str| json!({"what": what, "why": why, "clause": "pgbench"});
    json!([
        line(
            "random numbers are uniform as pgbench's, but other values",
            "a request is a function of (seed, terminal, number)",
        ),
        line(
            "a statement that finds no row, or several, fails the transaction",
            "a database of another scale must not look fast",
        ),
        line("history is not emptied before a run", "the conditions compare it with the balances",),
    ])
}
