//! What a load made, remembered in the database itself: every relation and constraint by its OID,
//! written in the transaction that creates it. A load has what stands there and still has its name,
//! schema and owner; all else is somebody else's, whatever it is called. SQL only, no sockets.

pub mod functions;

use crate::dataset::Dataset;

/// The table that remembers. It stands in itself, so that a copy of it elsewhere remembers nothing.
pub const TABLE: &str = "pgdyno_load_made";

const DDL: &str = "CREATE TABLE pgdyno_load_made (kind text NOT NULL, id oid NOT NULL, \
                   schema name NOT NULL, name name NOT NULL, columns int NOT NULL, \
                   PRIMARY KEY (kind, id))";

/// Relations that are a load's, as a query of `oid`, `schema`, `name`, `relkind`, `columns`.
///
/// An OID alone is not enough (a restored dump gives it to others), nor a name (tables are dropped
/// and made again), nor both where somebody else wrote the record.
///
/// REINDEX CONCURRENTLY puts an index with another OID in the place of one that is then gone. It is
/// still the load's if it lies on a table of the load under the recorded name, and serves a
/// recorded constraint or has the recorded definition.
pub const OURS: &str = "\
    SELECT DISTINCT c.oid, n.nspname AS schema, c.relname AS name, c.relkind, m.columns \
    FROM pgdyno_load_made m JOIN pg_class c ON c.relname = m.name \
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = m.schema \
    JOIN pg_class r ON r.oid = to_regclass('pgdyno_load_made') AND r.relowner = c.relowner \
    WHERE m.kind = 'relation' AND EXISTS (SELECT FROM pgdyno_load_made own \
    WHERE own.kind = 'relation' AND own.id = r.oid AND own.name = r.relname) \
    AND (c.oid = m.id OR c.relkind = 'i' AND NOT EXISTS (SELECT FROM pg_class WHERE oid = m.id) \
    AND EXISTS (SELECT FROM pg_index i JOIN pg_class t ON t.oid = i.indrelid \
    JOIN pgdyno_load_made o ON o.kind = 'relation' AND o.id = t.oid AND o.name = t.relname \
    WHERE i.indexrelid = c.oid AND t.relowner = r.relowner AND (EXISTS (\
    SELECT FROM pg_constraint k JOIN pgdyno_load_made l ON l.kind = 'constraint' AND l.id = k.oid \
    AND l.name = k.conname \
    WHERE k.conindid = c.oid AND k.conrelid = t.oid AND k.contype IN ('p', 'u')) \
    OR EXISTS (SELECT FROM pgdyno_load_made d WHERE d.kind = 'definition' AND d.id = m.id \
    AND d.name = md5(pg_get_indexdef(c.oid))))))";

/// What others put upon the tables of a load and what would go with them, in words: their indexes,
/// columns, constraints, triggers, partitions, sequences, statistics, places in publications.
///
/// A constraint that the server itself derived from one of the load's is none of others: when a
/// partition is detached, it gets new ones for its references to partitioned tables.
pub const ADDED: &str = "\
    WITH RECURSIVE ours AS (SELECT oid, columns FROM ({OURS}) known), kept (oid) AS (\
    SELECT id FROM pgdyno_load_made WHERE kind = 'constraint' \
    UNION SELECT k.oid FROM kept JOIN pg_constraint k ON k.conparentid = kept.oid \
    WHERE k.conrelid IN (SELECT oid FROM ours)), goes (classid, objid) AS (\
    SELECT 'pg_class'::regclass::oid, oid FROM ours \
    UNION SELECT d.classid, d.objid FROM goes JOIN pg_depend d \
    ON d.refclassid = goes.classid AND d.refobjid = goes.objid AND d.refclassid IN \
    ('pg_class'::regclass, 'pg_constraint'::regclass) WHERE d.deptype IN ('a', 'i', 'P', 'S')) \
    SELECT pg_describe_object(classid, objid, 0) AS what FROM goes \
    WHERE classid NOT IN ('pg_type'::regclass, 'pg_attrdef'::regclass) \
    AND NOT (classid = 'pg_class'::regclass AND (objid IN (SELECT oid FROM ours) \
    OR objid IN (SELECT oid FROM pg_class WHERE relnamespace = 'pg_toast'::regnamespace))) \
    AND NOT (classid = 'pg_constraint'::regclass AND objid IN (SELECT oid FROM kept)) \
    AND NOT (classid = 'pg_trigger'::regclass AND objid IN \
    (SELECT oid FROM pg_trigger WHERE tgisinternal)) \
    UNION SELECT format('column %I of table %s', attname, attrelid::regclass) \
    FROM pg_attribute JOIN ours ON oid = attrelid WHERE attnum > columns AND NOT attisdropped \
    UNION SELECT format('table %s, of which %s is a part', inhparent::regclass, \
    inhrelid::regclass) FROM pg_inherits JOIN ours ON oid = inhrelid \
    WHERE inhparent NOT IN (SELECT oid FROM ours) ORDER BY what";

/// [`ADDED`], ready to run.
#[must_use]
pub fn added() -> String {
    ADDED.replace("{OURS}", OURS)
}

/// Creates the record, with the relations of these names, which the same transaction created, and
/// with what hangs on them.
#[must_use]
pub fn creation(names: &[String]) -> Vec<String> {
    vec![DDL.to_owned(), relations(names), hanging()]
}

/// Remembers relations of the current schema that the same transaction created under these names.
#[must_use]
pub fn relations(names: &[String]) -> String {
    format!(
        "INSERT INTO {TABLE} SELECT 'relation', c.oid, n.nspname, c.relname, c.relnatts \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE n.nspname = current_schema() AND c.relname IN ({})",
        literals(names)
    )
}

/// Remembers indexes, with a digest of their definitions, and constraints that the same transaction
/// made on tables of the record.
#[must_use]
pub fn hanging() -> String {
    let ours = format!("(SELECT id FROM {TABLE} WHERE kind = 'relation')");
    let now = "xmin::text::bigint = txid_current() % 4294967296";
    format!(
        "INSERT INTO {TABLE} SELECT 'relation', c.oid, n.nspname, c.relname, c.relnatts \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE i.indrelid IN {ours} AND i.{now} \
         UNION ALL SELECT 'definition', c.oid, n.nspname, md5(pg_get_indexdef(c.oid)), 0 \
         FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE i.indrelid IN {ours} AND i.{now} \
         UNION ALL SELECT 'constraint', k.oid, n.nspname, k.conname, 0 FROM pg_constraint k \
         JOIN pg_namespace n ON n.oid = k.connamespace WHERE k.conrelid IN {ours} AND k.{now} \
         ON CONFLICT DO NOTHING"
    )
}

/// A query of what stands where a load creates: `what` in words, `oid`.
///
/// Tables, views and sequences count wherever a search path shows them, since new ones would hide
/// them; indexes and types in the load's schema.
///
/// # Arguments
///
/// `relations` and `indexes` are names; `schema` is an expression: a literal, `current_schema()`.
#[must_use]
pub fn in_the_way(relations: &[String], indexes: &[String], schema: &str) -> String {
    let indexes = if indexes.is_empty() { "NULL".to_owned() } else { literals(indexes) };
    let relations = literals(relations);
    let word = "CASE c.relkind WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' \
                WHEN 'S' THEN 'sequence' WHEN 'i' THEN 'index' WHEN 'I' THEN 'index' \
                WHEN 'c' THEN 'type' WHEN 'f' THEN 'foreign table' ELSE 'table' END";
    format!(
        "SELECT format('%s %I.%I', {word}, n.nspname, c.relname) AS what, c.oid \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relname IN ({relations}) \
         AND (n.nspname = {schema} OR pg_table_is_visible(c.oid)) \
         OR c.relname IN ({indexes}) AND n.nspname = {schema} \
         UNION ALL SELECT format('type %I.%I', n.nspname, t.typname), t.oid \
         FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace \
         WHERE t.typrelid = 0 AND t.typname IN ({relations}) AND n.nspname = {schema} \
         ORDER BY what"
    )
}

/// Tables and sequences of a dataset: everything that rows are read from.
#[must_use]
pub fn parts(dataset: &dyn Dataset) -> Vec<String> {
    let tables = dataset.tables().iter().map(|table| table.name.clone());
    tables.chain(dataset.sequences().iter().map(|name| (*name).to_owned())).collect()
}

/// As a literal of SQL.
#[must_use]
pub fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// As a name of SQL, whatever it is.
#[must_use]
pub fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn literals(names: &[String]) -> String {
    let all: Vec<String> = names.iter().map(|name| literal(name)).collect();
    all.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_texts_are_quoted_whatever_they_hold() {
        assert_eq!(literal("o'clock"), "'o''clock'");
        assert_eq!(quoted("my \"own\" schema"), "\"my \"\"own\"\" schema\"");
    }

    #[test]
    fn the_record_stands_in_itself_only_if_it_is_named() {
        let names = ["stock".to_owned(), TABLE.to_owned()];
        let sql = creation(&names);
        assert!(sql[0].starts_with("CREATE TABLE pgdyno_load_made ("));
        assert!(sql[1].ends_with("c.relname IN ('stock', 'pgdyno_load_made')"), "{}", sql[1]);
        assert!(!added().contains("{OURS}"));
    }

    #[test]
    fn no_index_is_in_the_way_where_none_is_made() {
        let sql = in_the_way(&["stock".to_owned()], &[], "current_schema()");
        assert!(sql.contains("c.relname IN (NULL) AND n.nspname = current_schema()"), "{sql}");
    }
}
