//! What is in the database before a load, and what a load creates, drops and records there.

use std::collections::{BTreeMap, HashSet};

use wire::{Error, Session, Stream};
use workload::{
    dataset::Dataset,
    tpcc::schema::{LOAD_TABLE, LOAD_TABLE_DDL},
};

use super::{
    ledger::{self, Begun, literal},
    pieces::{self, Relation},
};
use crate::error::RunError;

/// Comment on [`LOAD_TABLE`] before the name of the workload. The table has no rows until the load
/// is complete.
const MARK: &str = "tables of a pgdyno load of ";
/// Key of an advisory lock: sessions of a load share it; who begins one must have it alone.
const LOCK: &str = "1346850361, 1869374820";
/// Taken by each session of a load, for as long as it lasts: work that outlives its loader keeps
/// another load out.
///
/// It may wait for other sessions of its load; versions from 14 on could end it for that.
pub(super) const ATTENDANCE: &str = "SELECT pg_advisory_lock_shared(1346850361, 1869374820); \
    SELECT set_config(name, '0', false) FROM pg_settings WHERE name = 'idle_session_timeout'";

/// What is in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing that a load would create.
    Nothing,
    /// A complete load of ours, with what it remembers.
    Complete(BTreeMap<String, String>),
    /// A load of ours that did not end, with the steps it did.
    Part(Box<Begun>, HashSet<String>),
    /// A load of ours that did not end and cannot go on.
    Remains,
    /// Somebody else's tables.
    Foreign,
}

/// Tables that are in the way, by name, and where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Occupied {
    names: Vec<String>,
    schema: String,
    database: String,
}

impl Occupied {
    /// For errors.
    pub(super) fn fact(&self) -> String {
        let Self { names, schema, database, .. } = self;
        format!(
            "database {database} has tables {} in schema {schema}, a load creates them",
            names.join(", ")
        )
    }

    /// Drops them all; sequences after the tables that use them. Without CASCADE: what others
    /// built upon them makes this fail.
    pub(super) async fn drop(
        &self,
        dataset: &dyn Dataset,
        session: &mut Session<Stream>,
    ) -> Result<(), RunError> {
        let is_sequence = |name: &&String| dataset.sequences().contains(&name.as_str());
        let (sequences, tables): (Vec<&String>, Vec<&String>) =
            self.names.iter().partition(is_sequence);
        let drop = |what: &str, names: &[&String]| {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            (!names.is_empty()).then(|| format!("DROP {what} {}", names.join(", ")))
        };
        let sql: Vec<String> =
            [drop("TABLE", &tables), drop("SEQUENCE", &sequences)].into_iter().flatten().collect();
        let done = session.simple(&sql.join("; ")).await;
        done.map(drop_rows).map_err(|e| RunError::target(&"drop the earlier load", &e))
    }
}

/// Nothing is of interest in the answer.
fn drop_rows(_rows: Vec<Vec<Option<String>>>) {}

/// Looks at the database, alone: no other load is under way.
pub(super) async fn look(
    dataset: &dyn Dataset,
    session: &mut Session<Stream>,
) -> Result<(Found, Occupied), RunError> {
    let failed = |e: Error| RunError::target(&"look for tables", &e);
    alone(session).await?;
    let tables = dataset.tables().iter().map(|table| table.name.clone());
    let partitions = pieces::all(dataset, None).into_iter();
    let partitions = partitions.filter(|one| one.partition.is_some()).map(|one: Relation| one.name);
    let sequences = dataset.sequences().iter().map(|name| (*name).to_owned());
    let ours = [LOAD_TABLE, ledger::TABLE].map(str::to_owned);
    let list: Vec<String> = tables
        .chain(partitions)
        .chain(sequences)
        .chain(ours)
        .map(|name| format!("to_regclass({})", literal(&name)))
        .collect();
    // A partition goes with its table.
    let sql = format!(
        "SELECT relname, relnamespace::regnamespace, current_database() FROM pg_class \
         WHERE oid IN ({}) AND NOT relispartition ORDER BY relname",
        list.join(", ")
    );
    let rows = session.simple(&sql).await.map_err(failed)?;
    let found: Vec<[String; 3]> = rows
        .into_iter()
        .filter_map(|row| <[Option<String>; 3]>::try_from(row).ok())
        .map(|row| row.map(Option::unwrap_or_default))
        .collect();
    let Some([_, schema, database]) = found.first().cloned() else {
        return Ok((Found::Nothing, Occupied::default()));
    };
    let one_schema = found.iter().all(|[_, of, _]| *of == schema);
    let names: Vec<String> = found.into_iter().map(|[name, ..]| name).collect();
    let has = |name: &str| names.iter().any(|known| known == name);
    let state = if has(LOAD_TABLE) && one_schema {
        state(dataset.name(), has(ledger::TABLE), session).await?
    } else {
        Found::Foreign
    };
    Ok((state, Occupied { names, schema, database }))
}

/// Waits a little for sessions of another load that have nobody left to work for.
async fn alone(session: &mut Session<Stream>) -> Result<(), RunError> {
    let sql = format!(
        "BEGIN; SET LOCAL lock_timeout = '10s'; SELECT pg_advisory_xact_lock({LOCK}); COMMIT"
    );
    match session.simple(&sql).await {
        Ok(_) => Ok(()),
        Err(e) if e.sqlstate() == Some("55P03") => {
            let fact = "another load of this database is under way".to_owned();
            Err(RunError::spec(fact, Some("Wait for its end, or stop it.")))
        }
        Err(e) => Err(RunError::target(&"look for another load", &e)),
    }
}

/// What [`LOAD_TABLE`] speaks of: a complete load (rows) or not (its comment), ours or not.
async fn state(
    workload: &str,
    has_ledger: bool,
    session: &mut Session<Stream>,
) -> Result<Found, RunError> {
    let failed = |e: Error| RunError::target(&format!("read {LOAD_TABLE}"), &e);
    let sql = format!("SELECT key, value FROM {LOAD_TABLE}");
    let rows = match session.simple(&sql).await {
        Ok(rows) => rows,
        // A table of that name without these columns is somebody else's.
        Err(e) if matches!(e.sqlstate(), Some("42703" | "42883")) => return Ok(Found::Foreign),
        Err(e) => return Err(failed(e)),
    };
    let record: BTreeMap<String, String> = rows
        .into_iter()
        .filter_map(|row| <[Option<String>; 2]>::try_from(row).ok())
        .filter_map(|[key, value]| Some((key?, value?)))
        .collect();
    if let Some(of) = record.get("workload") {
        return Ok(if of == workload { Found::Complete(record) } else { Found::Foreign });
    }
    let sql = format!("SELECT obj_description('{LOAD_TABLE}'::regclass, 'pg_class')");
    let rows = session.simple(&sql).await.map_err(failed)?;
    let comment = rows.into_iter().next().and_then(|row| row.into_iter().next()?);
    if comment.as_deref() != Some(format!("{MARK}{workload}").as_str()) {
        return Ok(Found::Foreign);
    }
    if !has_ledger {
        return Ok(Found::Remains);
    }
    let (begun, done) = ledger::read(session).await?;
    Ok(Found::Part(Box::new(begun), done))
}

/// Statements that happen together or not at all.
pub(super) fn transaction(statements: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = statements.into_iter().collect();
    format!("BEGIN; {}; COMMIT", all.join("; "))
}

/// Creates all tables and the ledger. [`LOAD_TABLE`] stays empty until they are complete.
pub(super) async fn create(
    dataset: &dyn Dataset,
    begun: &Begun,
    session: &mut Session<Stream>,
) -> Result<(), RunError> {
    let mark = literal(&format!("{MARK}{}", dataset.name()));
    let mut sql = pieces::creation(dataset);
    sql.push(LOAD_TABLE_DDL.to_owned());
    sql.push(format!("COMMENT ON TABLE {LOAD_TABLE} IS {mark}"));
    sql.extend(ledger::creation(begun)?);
    let done = session.simple(&transaction(sql)).await;
    done.map(drop_rows).map_err(|e| RunError::target(&"create tables", &e))
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
    let tables: Vec<String> =
        dataset.tables().iter().map(|table| format!("'{}'::regclass", table.name)).collect();
    sql.push(dropped("f", &tables));
    if begun.builds {
        sql.push(dropped("p", &tables));
        let indexes = dataset.indexes().into_iter().filter(|index| !index.primary);
        let indexes: Vec<String> = indexes.map(|index| index.name).collect();
        if !indexes.is_empty() {
            sql.push(format!("DROP INDEX {}", indexes.join(", ")));
        }
    }
    sql.extend(ledger::creation(begun)?);
    let done = session.simple(&transaction(sql)).await;
    done.map(drop_rows).map_err(|e| RunError::target(&"open the load again", &e))
}

/// Drops the constraints of one type of these tables; those of partitions go with their table's.
fn dropped(kind: &str, tables: &[String]) -> String {
    format!(
        "DO $$ DECLARE one record; BEGIN FOR one IN SELECT conrelid::regclass AS t, conname \
         FROM pg_constraint WHERE conrelid IN ({}) AND contype = '{kind}' AND conparentid = 0 \
         LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', one.t, one.conname); \
         END LOOP; END $$",
        tables.join(", ")
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
