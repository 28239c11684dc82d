//! What is in the database before a load: an earlier load of ours, as far as its record names it,
//! and what stands in the way that no load of ours made. Nothing is changed.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use wire::{Error, Session, Stream};
use workload::{
    dataset::Dataset,
    made::{self, literal, quoted},
    tpcc::schema::LOAD_TABLE,
};

use super::{
    ledger::{self, Begun},
    pieces,
};
use drive::error::RunError;

/// Comment on [`LOAD_TABLE`] before the name of the workload. The table has no rows until the load
/// is complete.
pub(super) const MARK: &str = "tables of a pgdyno load of ";
/// Key of an advisory lock: sessions of a load share it; who begins one must have it alone.
pub(super) const LOCK: &str = "1346850361, 1869374820";
/// So many things a message names, and so many if people are to drop them.
const NAMED: usize = 5;
const NAMED_TO_DROP: usize = 30;

/// What is in the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Nothing of ours.
    Nothing,
    /// A complete load of this workload, with what it remembers.
    Complete(BTreeMap<String, String>),
    /// A load of this workload that did not end, with the steps it did.
    Part(Box<Begun>, HashSet<String>),
    /// A load that cannot go on or be added to: of another workload, or what is left of one.
    Remains(String),
    /// A load that does not say what it made: an older version's, or a restored copy.
    Unrecorded,
}

/// A relation that the record names, and that is still the one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// For `regclass` and the like.
    pub(super) oid: String,
    /// Without its schema.
    pub(super) name: String,
    /// As in `pg_class`.
    pub(super) relkind: String,
    /// Whether it is a partition of another table of the load.
    pub(super) is_part: bool,
}

/// The database as a load sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its name.
    pub(super) database: String,
    /// Where the earlier load is, or where this one would create its tables.
    pub(super) schema: String,
    /// The earlier load.
    pub(super) found: Found,
    /// Everything of the earlier load that is still there.
    pub(super) made: Vec<Made>,
    /// What has a name that this load needs and is not of the earlier one: `table public.stock`.
    pub(super) foreign: Vec<String>,
    /// What others put upon tables of the earlier load: `index mine`.
    pub(super) added: Vec<String>,
}

impl Seen {
    /// Refuses a load whose tables or indexes are not all there.
    pub(super) fn require(&self, names: &[String]) -> Result<(), RunError> {
        let there: BTreeSet<&str> = self.made.iter().map(|one| one.name.as_str()).collect();
        let gone = names.iter().filter(|name| !there.contains(name.as_str())).cloned();
        let gone: Vec<String> = gone.collect();
        if gone.is_empty() {
            return Ok(());
        }
        let fact = format!(
            "the load in database {} made {}, which is no longer there",
            self.database,
            listed(&gone, NAMED)
        );
        Err(RunError::spec(fact, Some("Load anew with --drop-ours, or into another database.")))
    }

    /// What is not of a load, or not known to be, has names that this load needs.
    pub(super) fn in_the_way(&self) -> RunError {
        let Self { database, foreign, .. } = self;
        if self.found == Found::Unrecorded {
            let fact = format!(
                "database {database} has a load that does not say what it made: it is an older \
                 version's, or a copy"
            );
            let hint = format!(
                "It can be used as it is. To load anew drop what is of it yourself: {}; or use \
                 another database.",
                listed(foreign, NAMED_TO_DROP)
            );
            return RunError::spec(fact, Some(&hint));
        }
        let fact = format!(
            "database {database} has {}, which pgdyno did not make; this load would use such names",
            listed(foreign, NAMED)
        );
        RunError::spec(fact, Some("Use another database, or move these out of the way yourself."))
    }

    /// Others put something upon the tables of a load that would be dropped or filled.
    pub(super) fn added_to(&self) -> RunError {
        let fact = format!(
            "in database {} others added to tables of the load: {}",
            self.database,
            listed(&self.added, NAMED)
        );
        RunError::spec(fact, Some("Drop these yourself, or load into another database."))
    }
}

/// Names in a list that is not longer than people read.
fn listed(names: &[String], most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown = names[..names.len() - more].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

/// Looks at the database, alone: no other load is under way. As in [`see`], from here on the
/// session finds everything in the load's schema and nowhere else.
pub(super) async fn look(
    dataset: &dyn Dataset,
    session: &mut Session<Stream>,
) -> Result<Seen, RunError> {
    alone(session).await?;
    see(dataset, session).await
}

/// Looks at the database beside other sessions of the same load.
pub(super) async fn see(
    dataset: &dyn Dataset,
    session: &mut Session<Stream>,
) -> Result<Seen, RunError> {
    let (database, schema) = place(session).await?;
    let way = in_the_way(dataset, &schema, session).await?;
    let pin = format!("SELECT set_config('search_path', {}, false)", literal(&quoted(&schema)));
    rows::<1>(session, &pin, "set the search path").await?;
    let made = read_made(session).await?;
    let ours: BTreeSet<&str> = made.iter().map(|one| one.oid.as_str()).collect();
    let foreign: Vec<String> = way
        .into_iter()
        .filter(|[_, oid]| !ours.contains(oid.as_str()))
        .map(|[what, _]| what)
        .collect();
    let has = |name: &str| made.iter().any(|one| one.name == name);
    let found = if made.is_empty() {
        unrecorded(session).await?
    } else if has(LOAD_TABLE) {
        state(dataset.name(), has(ledger::TABLE), session).await?
    } else {
        Found::Remains("without its table pgdyno_load".to_owned())
    };
    let added = if made.is_empty() {
        Vec::new()
    } else {
        let found = rows(session, &made::added(), "look for what hangs on the tables").await?;
        found.into_iter().map(|[what]: [String; 1]| what).collect()
    };
    Ok(Seen { database, schema, found, made, foreign, added })
}

/// Rows of text of a query; those of other shape are left out.
async fn rows<const N: usize>(
    session: &mut Session<Stream>,
    sql: &str,
    what: &str,
) -> Result<Vec<[String; N]>, RunError> {
    let rows = session.simple(sql).await.map_err(|e| RunError::target(&what, &e))?;
    let shaped = rows.into_iter().filter_map(|row| <[Option<String>; N]>::try_from(row).ok());
    Ok(shaped.map(|row| row.map(Option::unwrap_or_default)).collect())
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

/// Database, and schema: that of an earlier load that the search path shows, else the one that
/// tables are created in.
async fn place(session: &mut Session<Stream>) -> Result<(String, String), RunError> {
    let sql = format!(
        "SELECT current_database(), coalesce((SELECT n.nspname FROM pg_class c \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = \
         coalesce(to_regclass('{}'), to_regclass('{LOAD_TABLE}'))), current_schema(), '')",
        made::TABLE
    );
    let found: Vec<[String; 2]> = rows(session, &sql, "look for a schema").await?;
    let [database, schema] = found
        .into_iter()
        .next()
        .ok_or_else(|| RunError::internal("the server names no database".into()))?;
    if schema.is_empty() {
        let fact = format!("search_path in database {database} names no schema that is there");
        return Err(RunError::spec(fact, Some("Create the schema, or name another one.")));
    }
    Ok((database, schema))
}

/// What has a name that the load needs, with its OID.
async fn in_the_way(
    dataset: &dyn Dataset,
    schema: &str,
    session: &mut Session<Stream>,
) -> Result<Vec<[String; 2]>, RunError> {
    let relations = pieces::names(dataset);
    let indexes = pieces::index_names(dataset);
    let sql = made::in_the_way(&relations, &indexes, &literal(schema));
    rows(session, &sql, "look for tables").await
}

/// The relations that the record names; none where it is missing, or is no record of ours.
async fn read_made(session: &mut Session<Stream>) -> Result<Vec<Made>, RunError> {
    let sql = format!(
        "SELECT oid, name, relkind, EXISTS (SELECT FROM pg_inherits JOIN pgdyno_load_made m \
         ON m.id = inhparent AND m.kind = 'relation' WHERE inhrelid = oid) FROM ({}) AS ours",
        made::OURS
    );
    let there = format!("SELECT to_regclass('{}') IS NOT NULL", made::TABLE);
    let there: Vec<[String; 1]> = rows(session, &there, "look for a record").await?;
    if there != [["t".to_owned()]] {
        return Ok(Vec::new());
    }
    let found = match session.simple(&sql).await {
        Ok(found) => found,
        // One without these columns is somebody else's.
        Err(e) if matches!(e.sqlstate(), Some("42703" | "42883" | "42809")) => {
            return Ok(Vec::new());
        }
        Err(e) => return Err(RunError::target(&format!("read {}", made::TABLE), &e)),
    };
    let shaped = found.into_iter().filter_map(|row| <[Option<String>; 4]>::try_from(row).ok());
    Ok(shaped
        .map(|row| row.map(Option::unwrap_or_default))
        .map(|[oid, name, relkind, part]| Made { oid, name, relkind, is_part: part == "t" })
        .collect())
}

/// Whether there is a load without a record of what it made.
async fn unrecorded(session: &mut Session<Stream>) -> Result<Found, RunError> {
    let sql =
        format!("SELECT coalesce(obj_description(to_regclass('{LOAD_TABLE}'), 'pg_class'), '')");
    let comment: Vec<[String; 1]> = rows(session, &sql, "look for an earlier load").await?;
    let is_ours = comment.first().is_some_and(|[comment]| comment.starts_with(MARK));
    Ok(if is_ours { Found::Unrecorded } else { Found::Nothing })
}

/// What [`LOAD_TABLE`] speaks of: a complete load (rows) or not (its comment).
async fn state(
    workload: &str,
    has_ledger: bool,
    session: &mut Session<Stream>,
) -> Result<Found, RunError> {
    let failed = |e: Error| RunError::target(&format!("read {LOAD_TABLE}"), &e);
    let sql = format!("SELECT key, value FROM {LOAD_TABLE}");
    let record: BTreeMap<String, String> = session
        .simple(&sql)
        .await
        .map_err(failed)?
        .into_iter()
        .filter_map(|row| <[Option<String>; 2]>::try_from(row).ok())
        .filter_map(|[key, value]| Some((key?, value?)))
        .collect();
    if let Some(of) = record.get("workload") {
        let remains = Found::Remains(format!("of {of}"));
        return Ok(if of == workload { Found::Complete(record) } else { remains });
    }
    let sql = format!("SELECT obj_description('{LOAD_TABLE}'::regclass, 'pg_class')");
    let comment: Vec<[String; 1]> = rows(session, &sql, &format!("read {LOAD_TABLE}")).await?;
    let of = comment.first().and_then(|[comment]| comment.strip_prefix(MARK)).unwrap_or_default();
    if of != workload || !has_ledger {
        return Ok(Found::Remains("that did not end".to_owned()));
    }
    let (begun, done) = ledger::read(session).await?;
    Ok(Found::Part(Box::new(begun), done))
}
