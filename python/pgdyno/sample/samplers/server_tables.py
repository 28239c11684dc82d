"""Tables and indexes at both ends of the window: size, rows, HOT share, vacuum, freeze age.

Of the database that the samplers' session is in; others that are driven are named as missing.
The thousand largest of each are read, the server's own catalogue left out. Source: PostgreSQL,
"The Cumulative Statistics System", pg_stat_all_tables, pg_stat_all_indexes; pg_class.
"""

from __future__ import annotations

from pgdyno.model.server_views import OTHER_DATABASES, TABLES
from pgdyno.model.wording import plural
from pgdyno.sample.lacking import is_on, major_of, not_before, switched_off
from pgdyno.sample.sampler import Column, Found, Label, Missing, Snapshot, Subject
from pgdyno.sample.table_query import rows_of

_MOST = 1000
_BUDGET_US = 50_000
_INSERTS_SINCE = 13  # major versions
_MOVES_SINCE = 16
_TIMES_SINCE = 18
_COUNTED_WITH = "track_counts"
_TABLE = (
    (Column("bytes", "B", "gauge"), "pg_table_size(relid)"),
    (Column("index_bytes", "B", "gauge"), "pg_indexes_size(relid)"),
    (Column("live_rows", "1", "gauge"), "n_live_tup"),
    (Column("dead_rows", "1", "gauge"), "n_dead_tup"),
    (Column("inserted", "1"), "n_tup_ins"),
    (Column("updated", "1"), "n_tup_upd"),
    (Column("hot_updated", "1"), "n_tup_hot_upd"),
    (Column("deleted", "1"), "n_tup_del"),
    (Column("seq_scans", "1"), "seq_scan"),
    (Column("seq_rows_read", "1"), "seq_tup_read"),
    (Column("index_scans", "1"), "coalesce(idx_scan, 0)"),
    (Column("modified_since_analyze", "1", "gauge"), "n_mod_since_analyze"),
    (Column("vacuums", "1"), "vacuum_count + autovacuum_count"),
    (Column("analyzes", "1"), "analyze_count + autoanalyze_count"),
    (Column("since_vacuum_s", "s", "gauge"),
     "extract(epoch FROM clock_timestamp() - greatest(last_vacuum, last_autovacuum))"),
    (Column("since_analyze_s", "s", "gauge"),
     "extract(epoch FROM clock_timestamp() - greatest(last_analyze, last_autoanalyze))"),
    (Column("freeze_age", "1", "gauge"), "age(nullif(relfrozenxid, '0'))"),
    (Column("freeze_max_age", "1", "gauge"),  # a table's own can only be lower
     "least(current_setting('autovacuum_freeze_max_age')::bigint,"
     " (SELECT option_value::bigint FROM pg_options_to_table(reloptions)"
     " WHERE option_name = 'autovacuum_freeze_max_age'))"),
)  # fmt: skip
_TABLE_LATER = (
    (_INSERTS_SINCE, Column("inserted_since_vacuum", "1", "gauge"), "n_ins_since_vacuum",
     "rows inserted since a vacuum"),
    (_MOVES_SINCE, Column("moved_updated", "1"), "n_tup_newpage_upd",
     "updates that put a row on another page"),
    (_TIMES_SINCE, Column("vacuum_s", "s"), "(total_vacuum_time + total_autovacuum_time) / 1000",
     "time of vacuums by table"),
    (_TIMES_SINCE, Column("analyze_s", "s"), "(total_analyze_time + total_autoanalyze_time) / 1000",
     "time of ANALYZE by table"),
)  # fmt: skip
_INDEX = (
    (Column("bytes", "B", "gauge"), "pg_relation_size(indexrelid)"),
    (Column("scans", "1"), "idx_scan"),
    (Column("rows_read", "1"), "idx_tup_read"),
    (Column("rows_fetched", "1"), "idx_tup_fetch"),
)
_OURS_ALONE = "schemaname !~ '^pg_' AND schemaname <> 'information_schema'"


def tables_query(major: int) -> tuple[str, tuple[Column, ...]]:
    """The statement that reads tables, and its columns beside their name."""
    told = (*_TABLE, *((c, text) for first, c, text, _ in _TABLE_LATER if first <= major))
    parts = ", ".join(f"({text})::float8 AS {column.name}" for column, text in told)
    text = f"""
        SELECT relid::regclass::text AS relation, {parts}
        FROM pg_stat_all_tables JOIN pg_class c ON c.oid = relid
        WHERE {_OURS_ALONE} ORDER BY relpages DESC, relid LIMIT {_MOST}"""  # noqa: S608  ours
    return text, tuple(column for column, _ in told)


def indexes_query() -> tuple[str, tuple[Column, ...]]:
    """The same of indexes."""
    parts = ", ".join(f"({text})::float8 AS {column.name}" for column, text in _INDEX)
    text = f"""
        SELECT indexrelid::regclass::text AS relation, relid::regclass::text AS of_table, {parts}
        FROM pg_stat_all_indexes JOIN pg_class c ON c.oid = indexrelid
        WHERE {_OURS_ALONE} ORDER BY relpages DESC, indexrelid LIMIT {_MOST}"""  # noqa: S608  ours
    return text, tuple(column for column, _ in _INDEX)


def missing(major: int) -> list[Missing]:
    """What later versions tell of tables."""
    return [not_before(what, major, first) for first, _, _, what in _TABLE_LATER if first > major]


def sampler(subject: Subject) -> Found:
    """Both snapshots; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    if not is_on(session, _COUNTED_WITH):  # their counts would be zero, and dead rows too
        return switched_off(TABLES, _COUNTED_WITH)
    major = major_of(session)
    tables, of_tables = tables_query(major)
    indexes, of_indexes = indexes_query()
    found: list[Snapshot | Missing] = [
        Snapshot(
            "tables", (Label("relation"), *of_tables), lambda: rows_of(session, tables),
            budget_us=_BUDGET_US,
        ),
        Snapshot(
            "indexes", (Label("relation"), Label("of_table"), *of_indexes),
            lambda: rows_of(session, indexes), budget_us=_BUDGET_US,
        ),
        *missing(major),
    ]  # fmt: skip
    if any(name != session.info.dbname for name in subject.databases):
        driven = plural(len(subject.databases), "driven database")
        found.append(
            Missing(
                OTHER_DATABASES,
                f"of {driven} {session.info.dbname} alone is looked at",
            )
        )
    return found
