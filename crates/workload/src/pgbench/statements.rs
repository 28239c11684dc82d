//! Statements of pgbench's built-in scripts, word by word, and a function for face `procedure`.

use wire::{Kind as Type, Results, Statement};

use super::{
    schema::wide_accounts,
    spec::{Kind, PgbenchSpec},
};
use crate::{
    made::functions,
    spec::{Face, Isolation},
    written::{WrittenTables, tables_written},
};

pub(super) const BEGIN: &str = "begin";
pub(super) const ACCOUNTS_UPDATE: &str = "accounts_update";
pub(super) const ACCOUNTS_SELECT: &str = "accounts_select";
pub(super) const TELLERS_UPDATE: &str = "tellers_update";
pub(super) const BRANCHES_UPDATE: &str = "branches_update";
pub(super) const HISTORY_INSERT: &str = "history_insert";
pub(super) const END: &str = "end";
pub(super) const CALL: &str = "call";

/// Name and SQL of one transaction, in order.
type Named = (&'static str, &'static str);

const UPDATE_ACCOUNT: Named =
    (ACCOUNTS_UPDATE, "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2");
const SELECT_ACCOUNT: Named =
    (ACCOUNTS_SELECT, "SELECT abalance FROM pgbench_accounts WHERE aid = $1");
const UPDATE_TELLER: Named =
    (TELLERS_UPDATE, "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2");
const UPDATE_BRANCH: Named =
    (BRANCHES_UPDATE, "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2");
const INSERT_HISTORY: Named = (
    HISTORY_INSERT,
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) \
     VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)",
);

/// What the transactions do between BEGIN and END.
fn body(kind: Kind) -> &'static [Named] {
    match kind {
        Kind::Tpcb => {
            &[UPDATE_ACCOUNT, SELECT_ACCOUNT, UPDATE_TELLER, UPDATE_BRANCH, INSERT_HISTORY]
        }
        Kind::SimpleUpdate => &[UPDATE_ACCOUNT, SELECT_ACCOUNT, INSERT_HISTORY],
        Kind::SelectOnly => &[SELECT_ACCOUNT],
    }
}

/// The tables that a transaction changes, by whichever face.
pub(super) fn writes(kind: Kind) -> Option<WrittenTables> {
    WrittenTables::of(kind.name(), body(kind).iter().flat_map(|(_, sql)| tables_written(sql)))
}

/// Statements of a transaction, in the order in which it executes them.
pub(super) fn all(spec: &PgbenchSpec) -> Vec<Statement> {
    let begin = match spec.isolation {
        Isolation::ReadCommitted => "BEGIN".to_owned(),
        other => format!("BEGIN ISOLATION LEVEL {}", other.sql()),
    };
    let middle: Vec<(&str, String)> = if spec.face == Face::Procedure {
        vec![(CALL, format!("SELECT {}($1, $2, $3, $4)", function(spec.kind)))]
    } else {
        body(spec.kind).iter().map(|(name, sql)| (*name, (*sql).to_owned())).collect()
    };
    // One call in read committed is a transaction by itself.
    let alone = spec.kind == Kind::SelectOnly
        || (spec.face == Face::Procedure && spec.isolation == Isolation::ReadCommitted);
    let ends = |named: (&'static str, String)| (!alone).then_some(named);
    let aid = if wide_accounts(spec.scale) { Type::I64 } else { Type::I32 };
    ends((BEGIN, begin))
        .into_iter()
        .chain(middle)
        .chain(ends((END, "END".to_owned())))
        .map(|(name, sql)| Statement {
            name: name.to_owned(),
            sql,
            params: parameters(name, aid),
            results: Results::Binary,
        })
        .collect()
}

fn parameters(name: &str, aid: Type) -> Vec<Type> {
    let int = Type::I32;
    match name {
        ACCOUNTS_UPDATE => vec![int, aid],
        ACCOUNTS_SELECT => vec![aid],
        TELLERS_UPDATE | BRANCHES_UPDATE => vec![int, int],
        HISTORY_INSERT => vec![int, int, aid, int],
        CALL => vec![aid, int, int, int],
        _ => Vec::new(),
    }
}

fn function(kind: Kind) -> &'static str {
    match kind {
        Kind::Tpcb => "pgdyno_tpcb",
        _ => "pgdyno_simple_update",
    }
}

/// What must be in the database before sessions prepare: the function of face `procedure`.
pub(super) fn setup(spec: &PgbenchSpec) -> Vec<String> {
    if spec.face != Face::Procedure {
        return Vec::new();
    }
    let aid = if wide_accounts(spec.scale) { "bigint" } else { "int" };
    let names = [("aid", "arg_aid"), ("bid", "arg_bid"), ("tid", "arg_tid")];
    let mut steps = String::new();
    for (name, sql) in body(spec.kind) {
        let order: &[&str] = match *name {
            ACCOUNTS_UPDATE => &["arg_delta", "arg_aid"],
            ACCOUNTS_SELECT => &["arg_aid"],
            TELLERS_UPDATE => &["arg_delta", "arg_tid"],
            BRANCHES_UPDATE => &["arg_delta", "arg_bid"],
            _ => &["arg_tid", "arg_bid", "arg_aid", "arg_delta"],
        };
        let mut sql = (*sql).to_owned();
        for (at, argument) in order.iter().enumerate() {
            sql = sql.replace(&format!("${}", at + 1), argument);
        }
        if *name == ACCOUNTS_SELECT {
            sql = sql.replace("SELECT abalance FROM", "SELECT abalance INTO STRICT result FROM");
        }
        steps.extend(["  ", &sql, ";\n"]);
    }
    let [a, b, t] = names.map(|(_, argument)| argument);
    let name = function(spec.kind);
    let source = format!(
        "CREATE OR REPLACE FUNCTION {name}({a} {aid}, {b} int, {t} int, arg_delta int) RETURNS int \
         LANGUAGE plpgsql AS $$\nDECLARE\n  result int;\nBEGIN\n{steps}  RETURN result;\nEND\n$$"
    );
    functions::creation(&[name.to_owned()], vec![source])
}
