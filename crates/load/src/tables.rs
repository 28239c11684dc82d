//! What a load creates, drops and records in the database. It drops what its own record names and
//! nothing else, in one transaction with what it creates instead.

use std::collections::BTreeMap;

use wire::{Session, Stream};
use workload::{
    dataset::Dataset,
    made::{self, literal, quoted},
    tpcc::schema::{LOAD_TABLE, LOAD_TABLE_DDL},
};

use super::{
    ledger::{self, Begun},
    look::{MARK, Made, Seen},
    pieces::{self, Relation},
};
use drive::error::{ErrorKind, RunError};

/// Taken by each session of a load, for as long as it lasts: work that outlives its loader keeps
/// another load out.
///
/// It may wait for other sessions of its load; versions from 14 on could end it for that.
pub(super) const ATTENDANCE: &str = "SELECT pg_advisory_lock_shared(1346850361, 1869374820); \
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// Nothing is of interest in the answer.
fn drop_rows(_rows: Vec<Vec<Option<String>>>) {}

/// Statements that drop all that is left of an earlier load, and the functions that runs made in
/// its schema, without CASCADE. Nobody can put
/// another table in the place of one that is locked: what was looked at is what is dropped.
fn removal(earlier: &Seen) -> Vec<String> {
    let full = |one: &&Made| format!("{}.{}", quoted(&earlier.schema), quoted(&one.name));
    let of = |kinds: [&str; 2]| -> Vec<String> {
        let whole = earlier.made.iter().filter(|one| !one.is_part);
        whole.filter(|one| kinds.contains(&one.relkind.as_str())).map(|one| full(&one)).collect()
    };
    let (tables, sequences) = (of(["r", "p"]), of(["S", "S"]));
    let mut sql = Vec::new();
    if !tables.is_empty() {
        sql.push(format!("LOCK TABLE {} IN ACCESS EXCLUSIVE MODE", tables.join(", ")));
    }
    // LOCK takes no sequences; this keeps others from dropping one as well.
    sql.extend(sequences.iter().map(|name| format!("ALTER SEQUENCE {name} OWNED BY NONE")));
    let oids: Vec<&str> = earlier.made.iter().map(|one| one.oid.as_str()).collect();
    sql.push(format!(
        "DO $$ BEGIN IF (SELECT count(*) FROM ({ours}) AS ours WHERE oid IN ({oids})) <> {count} \
         OR EXISTS ({added}) THEN RAISE EXCEPTION 'tables of the earlier load were changed while \
         they were looked at'; END IF; END $$",
        ours = made::OURS,
        oids = oids.join(", "),
        count = oids.len(),
        added = made::added(),
    ));
    sql.push(made::functions::removal(&earlier.schema));
    if !tables.is_empty() {
        sql.push(format!("DROP TABLE {}", tables.join(", ")));
    }
    if !sequences.is_empty() {
        sql.push(format!("DROP SEQUENCE {}", sequences.join(", ")));
    }
    sql
}

/// Views, keys and the like lean on tables that were to be dropped: the server's own hint would be
/// to drop those as well.
fn leaned_on(error: &wire::Error) -> RunError {
    let fact = format!("others lean on tables of the earlier load: {error}");
    let hint = "Nothing was changed. Drop what leans on them yourself, or use another database.";
    RunError { kind: ErrorKind::Target, fact, hint: Some(hint.to_owned()) }
}

/// Statements that happen together or not at all.
pub(super) fn transaction(statements: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = statements.into_iter().collect();
    format!("BEGIN; {}; COMMIT", all.join("; "))
}

/// Creates all tables and the ledger, in place of those of an earlier load if there is one, and
/// remembers what was created. [`LOAD_TABLE`] stays empty until the tables are complete.
pub(super) async fn create(
    dataset: &dyn Dataset,
    begun: &Begun,
    earlier: Option<&Seen>,
    session: &mut Session<Stream>,
) -> Result<(), RunError> {
    let mark = literal(&format!("{MARK}{}", dataset.name()));
    let mut sql = earlier.map(removal).unwrap_or_default();
    sql.extend(pieces::creation(dataset));
    sql.push(LOAD_TABLE_DDL.to_owned());
    sql.push(format!("COMMENT ON TABLE {LOAD_TABLE} IS {mark}"));
    sql.extend(ledger::creation(begun)?);
    sql.extend(made::creation(&pieces::names(dataset)));
    match session.simple(&transaction(sql)).await {
        Err(e) if e.sqlstate() == Some("2BP01") => Err(leaned_on(&e)),
        done => done.map(drop_rows).map_err(|e| RunError::target(&"create tables", &e)),
    }
}

/// Makes a complete load one that is not: more units are added to it. References are dropped, and
/// indexes where they are to be built again.
pub(super) async fn reopen(
    dataset: &dyn Dataset,
    begun: &Begun,
    stored: &[Relation],
    session: &mut Session<Stream>,
) -> Result<(), RunError> {
    let mut sql = vec![format!("DELETE FROM {LOAD_TABLE}")];
    let off = |one: &Relation| format!("ALTER TABLE {} SET (autovacuum_enabled = off)", one.name);
    sql.extend(stored.iter().map(off));
    sql.push(dropped("f", None));
    if begun.builds {
        let (keys, others): (Vec<_>, Vec<_>) =
            dataset.indexes().into_iter().partition(|index| index.primary);
        let keys: Vec<String> = keys.iter().map(|index| literal(&index.name)).collect();
        sql.push(dropped("p", Some(&keys.join(", "))));
        let others: Vec<String> = others.into_iter().map(|index| index.name).collect();
        if !others.is_empty() {
            sql.push(format!("DROP INDEX {}", others.join(", ")));
        }
    }
    sql.extend(ledger::creation(begun)?);
    // With its key: else that would be something that others added, and nothing could go on.
    sql.extend([made::relations(&[ledger::TABLE.to_owned()]), made::hanging()]);
    let done = session.simple(&transaction(sql)).await;
    done.map(drop_rows).map_err(|e| RunError::target(&"open the load again", &e))
}

/// Drops the load's own constraints of one type, of these names if some are given; those of
/// partitions go with their table's.
fn dropped(kind: &str, names: Option<&str>) -> String {
    let which = names.map(|names| format!(" AND conname IN ({names})")).unwrap_or_default();
    format!(
        "DO $$ DECLARE one record; BEGIN FOR one IN SELECT conrelid::regclass AS t, conname \
         FROM pg_constraint JOIN {} m ON m.kind = 'constraint' AND m.id = pg_constraint.oid \
         WHERE contype = '{kind}' AND conparentid = 0{which} \
         LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.t, one.conname); \
         END LOOP; END $$",
        made::TABLE
    )
}

/// Records what was loaded, durably, ends the ledger and gives the tables back to autovacuum.
pub(super) async fn record(
    session: &mut Session<Stream>,
    stored: &[Relation],
    values: &BTreeMap<String, String>,
) -> Result<(), RunError> {
    let give_back = |one: &Relation| format!("ALTER TABLE {} RESET (autovacuum_enabled)", one.name);
    let insert = |(key, value): (&String, &String)| {
        format!("INSERT INTO {LOAD_TABLE} VALUES ({}, {})", literal(key), literal(value))
    };
    let durable = "SET LOCAL synchronous_commit = on".to_owned();
    let sql = transaction(
        [durable]
            .into_iter()
            .chain(stored.iter().map(give_back))
            .chain(values.iter().map(insert))
            .chain([format!("DROP TABLE {}", ledger::TABLE)]),
    );
    let done = session.simple(&sql).await;
    done.map(drop_rows).map_err(|e| RunError::target(&"record the load", &e))
}

/// Bytes of the relations with their indexes.
pub(super) async fn disk_bytes(
    session: &mut Session<Stream>,
    stored: &[Relation],
) -> Result<u64, RunError> {
    let names: Vec<String> = stored.iter().map(|one| format!("'{}'::regclass", one.name)).collect();
    let sql = format!(
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE oid IN ({})",
        names.join(", ")
    );
    let rows =
        session.simple(&sql).await.map_err(|e| RunError::target(&"measure the tables", &e))?;
    let bytes = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    bytes.ok_or_else(|| RunError::internal("tables have no size".into()))
}
