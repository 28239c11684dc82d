//! Functions that face `procedure` calls: made in one transaction, each with a comment that is its
//! record. A comment hangs on the function's OID, and this one holds a digest of schema, name and
//! all of the definition: who moves, renames or replaces the function takes it over, and pgdyno
//! leaves it alone. Every role can write it upon what is its own, whoever loaded the tables.

use super::literal;

/// Key of the advisory lock of who makes functions: two at once would refuse each other.
const LOCK: &str = "1346850361, 1718973027";

/// Whether row `p` of `pg_proc` is a function of ours, unchanged.
const IS_OURS: &str = "coalesce(CASE WHEN p.prokind <> 'a' THEN obj_description(p.oid, 'pg_proc') \
                       = 'pgdyno made ' || md5(pg_get_functiondef(p.oid)) END, false)";

/// Statements that make functions, in order, all or none: nobody else's of such a name is replaced
/// or hidden.
///
/// # Arguments
///
/// `names` are the functions'; `sources` create or replace them in the current schema.
#[must_use]
pub fn creation(names: &[String], sources: Vec<String>) -> Vec<String> {
    let mut sql = vec!["BEGIN".to_owned(), refusal(names)];
    sql.extend(sources);
    sql.extend([record(names), "COMMIT".to_owned()]);
    sql
}

fn refusal(names: &[String]) -> String {
    format!(
        "DO $$ DECLARE theirs text; BEGIN PERFORM pg_advisory_xact_lock({LOCK}); \
         SELECT string_agg(p.oid::regprocedure::text, ', ' ORDER BY p.proname, p.oid) INTO theirs \
         FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE p.proname IN ({}) \
         AND (n.nspname = current_schema() OR pg_function_is_visible(p.oid)) AND NOT {IS_OURS}; \
         IF theirs IS NOT NULL THEN RAISE EXCEPTION 'database % has function %, which pgdyno did \
         not make, or which was changed since', current_database(), theirs USING \
         ERRCODE = '42723', HINT = 'Face procedure makes functions of such names: rename these, \
         or drop them if you do not need them, or use another face.'; END IF; END $$",
        super::literals(names)
    )
}

fn record(names: &[String]) -> String {
    format!(
        "DO $$ DECLARE one record; BEGIN FOR one IN SELECT p.oid::regprocedure AS name, \
         'pgdyno made ' || md5(pg_get_functiondef(p.oid)) AS made FROM pg_proc p \
         JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = current_schema() \
         AND p.proname IN ({}) LOOP EXECUTE format('COMMENT ON ROUTINE %s IS %L', one.name, \
         one.made); END LOOP; END $$",
        super::literals(names)
    )
}

/// Drops functions of ours in a schema, without CASCADE; those of roles that this one is no member
/// of stay.
#[must_use]
pub fn removal(schema: &str) -> String {
    format!(
        "DO $$ DECLARE one regprocedure; BEGIN FOR one IN SELECT p.oid FROM pg_proc p \
         JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = {} \
         AND starts_with(p.proname, 'pgdyno_') AND pg_has_role(p.proowner, 'USAGE') AND {IS_OURS} \
         LOOP EXECUTE format('DROP ROUTINE %s', one); END LOOP; END $$",
        literal(schema)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_made_and_recorded_together_once_nobody_elses_is_in_the_way() {
        let sql = creation(&["pgdyno_a".to_owned(), "pgdyno_b".to_owned()], vec!["SOURCE".into()]);
        assert_eq!(
            (sql[0].as_str(), sql[2].as_str(), sql[4].as_str()),
            ("BEGIN", "SOURCE", "COMMIT")
        );
        assert!(sql[1].contains("IN ('pgdyno_a', 'pgdyno_b')") && sql[1].contains("RAISE"));
        assert!(sql[3].contains("COMMENT ON ROUTINE"));
    }

    #[test]
    fn no_more_is_dropped_than_what_was_made() {
        let sql = removal("my 'own'");
        assert!(sql.contains("n.nspname = 'my ''own'''") && !sql.contains("CASCADE"));
        assert!(sql.contains("md5(pg_get_functiondef(p.oid))"));
    }
}
