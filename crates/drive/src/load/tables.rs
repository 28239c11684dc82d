//! What is in the database before the load, and what a load creates, drops and records there.

use wire::{Error, Session, Stream};
use workload::tpcc::schema::{LOAD_TABLE, LOAD_TABLE_DDL, TABLES, Table};

use crate::error::RunError;

/// Comment on [`LOAD_TABLE`], which has no rows until the load is complete.
const MARK: &str = "tables of a pgdyno load of tpcc";

/// Makes room: refuses a database that has any of the tables, or drops those that are ours.
pub(super) async fn make_room(
    session: &mut Session<Stream>,
    drop_ours: bool,
) -> Result<(), RunError> {
    let failed = |e: Error| RunError::target(&"look for tables", &e);
    let names: Vec<&str> = TABLES.iter().map(|table| table.name).chain([LOAD_TABLE]).collect();
    let list: Vec<String> = names.iter().map(|name| format!("to_regclass('{name}')")).collect();
    let sql = format!(
        "SELECT relname, relnamespace::regnamespace, current_database() FROM pg_class \
         WHERE oid IN ({}) ORDER BY relname",
        list.join(", ")
    );
    let rows = session.simple(&sql).await.map_err(failed)?;
    let found: Vec<[String; 3]> = rows
        .into_iter()
        .filter_map(|row| <[Option<String>; 3]>::try_from(row).ok())
        .map(|row| row.map(Option::unwrap_or_default))
        .collect();
    let Some([_, schema, database]) = found.first() else { return Ok(()) };
    let tables: Vec<&str> = found.iter().map(|[table, ..]| table.as_str()).collect();
    let fact = format!(
        "database {database} has tables {} in schema {schema}, a load creates them",
        tables.join(", ")
    );
    if !drop_ours {
        let hint = "Load into another database, or allow the loader to drop an earlier load.";
        return Err(RunError::spec(fact, Some(hint)));
    }
    let one_schema = found.iter().all(|[_, of, _]| of == schema);
    if !one_schema || !tables.contains(&LOAD_TABLE) || !is_ours(session).await? {
        let fact = format!("{fact}, and {LOAD_TABLE} does not say that they are ours");
        return Err(RunError::spec(fact, Some("Drop them yourself, or use another database.")));
    }
    // Without CASCADE: what others built upon the tables makes this fail.
    let sql = format!("DROP TABLE {}", tables.join(", "));
    session.simple(&sql).await.map_err(|e| RunError::target(&"drop the earlier load", &e))?;
    Ok(())
}

/// Whether [`LOAD_TABLE`] speaks of a load of ours, be it complete (a row) or not (its comment).
async fn is_ours(session: &mut Session<Stream>) -> Result<bool, RunError> {
    let failed = |e: Error| RunError::target(&format!("read {LOAD_TABLE}"), &e);
    let first = |rows: Vec<Vec<Option<String>>>| rows.into_iter().next()?.into_iter().next()?;
    let sql = format!("SELECT value FROM {LOAD_TABLE} WHERE key = 'workload'");
    let value = match session.simple(&sql).await {
        Ok(rows) => first(rows),
        // A table of that name without these columns is somebody else's.
        Err(e) if matches!(e.sqlstate(), Some("42703" | "42883")) => return Ok(false),
        Err(e) => return Err(failed(e)),
    };
    if value.is_some() {
        return Ok(value.as_deref() == Some("tpcc"));
    }
    let sql = format!("SELECT obj_description('{LOAD_TABLE}'::regclass, 'pg_class')");
    let comment = first(session.simple(&sql).await.map_err(failed)?);
    Ok(comment.as_deref() == Some(MARK))
}

/// Statements that happen together or not at all.
pub(super) fn transaction(statements: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = statements.collect();
    format!("BEGIN; {}; COMMIT", all.join("; "))
}

/// Creates all tables. [`LOAD_TABLE`] stays empty until they are complete.
pub(super) async fn create(session: &mut Session<Stream>) -> Result<(), RunError> {
    // Autovacuum would compete with the COPY, and be cancelled by the index builds.
    let table = |table: &Table| format!("{} WITH (autovacuum_enabled = off)", table.ddl());
    let mark = format!("COMMENT ON TABLE {LOAD_TABLE} IS '{MARK}'");
    let sql = transaction(TABLES.iter().map(table).chain([LOAD_TABLE_DDL.to_owned(), mark]));
    session.simple(&sql).await.map_err(|e| RunError::target(&"create tables", &e))?;
    Ok(())
}

/// Records what was loaded, durably, and gives the tables back to autovacuum.
pub(super) async fn record(
    session: &mut Session<Stream>,
    values: &[(&str, String)],
) -> Result<(), RunError> {
    let give_back =
        |table: &Table| format!("ALTER TABLE {} RESET (autovacuum_enabled)", table.name);
    // Values are numbers and words of ours; quotes are doubled all the same.
    let insert = |(key, value): &(&str, String)| {
        format!("INSERT INTO {LOAD_TABLE} VALUES ('{key}', '{}')", value.replace('\'', "''"))
    };
    let durable = "SET LOCAL synchronous_commit = on".to_owned();
    let sql = transaction(
        [durable].into_iter().chain(TABLES.iter().map(give_back)).chain(values.iter().map(insert)),
    );
    session.simple(&sql).await.map_err(|e| RunError::target(&"record the load", &e))?;
    Ok(())
}

/// Bytes of the tables with their indexes.
pub(super) async fn disk_bytes(session: &mut Session<Stream>) -> Result<u64, RunError> {
    let names: Vec<String> = TABLES.iter().map(|t| format!("'{}'::regclass", t.name)).collect();
    let sql = format!(
        "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE oid IN ({})",
        names.join(", ")
    );
    let rows =
        session.simple(&sql).await.map_err(|e| RunError::target(&"measure the tables", &e))?;
    let bytes = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    bytes.ok_or_else(|| RunError::internal("tables have no size".into()))
}
