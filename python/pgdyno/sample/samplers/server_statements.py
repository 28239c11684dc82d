"""Statements at both ends of the window: calls, time, rows, blocks, WAL. Versions 12 to 18.

From the extension pg_stat_statements, where it is loaded: it is not by default, because it takes
time of every statement. Statements of the workload are known by name and kind of transaction, by
their text without constants; nested ones of its functions have names of their own, or none.

The snapshot holds the statements of the driven databases that took most time so far, a thousand:
of each database, user and level an entry of its own. Columns have the names of 18; what a version
of the extension lacks is left out. `since_unix_s`: since when an entry counts, told since 17.
Snapshot `statement counts`: when it was read, when all were last reset, and how often those that
were called least were evicted to make room.

Source: PostgreSQL, "pg_stat_statements".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg

from pgdyno.model.statement_counts import COUNTS, EVICTIONS, MOST, READ, RESET, SINCE, STATEMENTS
from pgdyno.sample.lacking import major_of, not_before, not_granted, reads_all_statistics
from pgdyno.sample.sampler import Column, Found, Label, Missing, Snapshot, Subject
from pgdyno.sample.statement_names import Known, known_statements, without_constants
from pgdyno.sample.table_query import (
    IN_TEMPLATE,
    Rows,
    add_extension,
    extension_schema,
    may_add_extension,
    rows_of,
    without_extension,
)

EXTENSION = "pg_stat_statements"
_UPDATE = f"ALTER EXTENSION {EXTENSION} UPDATE;"
_TEXT_CHARS = 1000  # that are kept
_READ_CHARS = 20_000  # that are read: a name is known by the whole text
_KINDS = {
    "calls": "1", "rows": "1", "shared_blks_hit": "1", "shared_blks_read": "1",
    "shared_blks_dirtied": "1", "shared_blks_written": "1", "temp_blks_read": "1",
    "temp_blks_written": "1", "wal_records": "1", "wal_fpi": "1", "wal_bytes": "B",
}  # fmt: skip
# Names since some version, of ms, and what they are here: seconds. A later name comes first.
_TIMES = {
    "exec_s": ("total_exec_time", "total_time"),
    "plan_s": ("total_plan_time",),
    "read_s": ("shared_blk_read_time", "blk_read_time"),
    "write_s": ("shared_blk_write_time", "blk_write_time"),
}
_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped"""
_SINCE = "stats_since"
_WITH_INFO = "toplevel"  # came with the view that tells of resets and evictions
_LATER = (  # what is missing where a column is not there, and the first major version with it
    ("WAL of statements", "wal_bytes", 13), ("planning of statements", "total_plan_time", 13),
    ("resets and evictions of statements", _WITH_INFO, 14),
    ("resets of single statements", _SINCE, 17),
)  # fmt: skip
_LOADED = f"SELECT FROM pg_settings WHERE name = '{EXTENSION}.max'"
_LABELS = ("queryid", "entry", "statement", "kind", "query")
_COUNTS = (
    Column(READ, "s", "gauge"), Column(RESET, "s", "gauge"), Column(EVICTIONS, "1"),
)  # fmt: skip
_NOBODY = Known("", "")


def query(schema: str, has: frozenset[str]) -> tuple[str, tuple[Column, ...]]:
    """The statement that reads it, and its columns beside the labels.

    Args:
        schema: That the extension lies in, quoted.
        has: Columns of its view.
    """
    told = {name: (unit, f"sum({name})::float8") for name, unit in _KINDS.items() if name in has}
    for name, theirs in _TIMES.items():
        if found := next((one for one in theirs if one in has), None):
            told[name] = ("s", f"sum({found})::float8 / 1000")
    entry = "userid, dbid" + (f", {_WITH_INFO}" if _WITH_INFO in has else "")
    # Statements that the role may not see share an entry of no name.
    since = f"extract(epoch FROM max({_SINCE}))::float8" if _SINCE in has else "NULL::float8"
    columns = ", ".join(f"{text} AS {name}" for name, (_, text) in told.items())
    text = f"""
        SELECT coalesce(queryid::text, '') AS queryid, concat_ws('.', {entry}) AS entry,
               coalesce(max(left(query, {_READ_CHARS})), '') AS query,
               {since} AS {SINCE}, {columns}
        FROM {schema}.{EXTENSION} WHERE dbid IN (
          SELECT oid FROM pg_database WHERE datname = ANY (%(databases)s))
        GROUP BY queryid, {entry} ORDER BY exec_s DESC LIMIT {MOST}"""  # noqa: S608  quoted, ours
    counters = (Column(name, unit) for name, (unit, _) in told.items())
    return text, (Column(SINCE, "s", "gauge"), *counters)


def counts_query(schema: str, has: frozenset[str]) -> str:
    """The statement that reads what is known of all entries together; see `query`."""
    told = "NULL::float8", "NULL::float8", ""
    if _WITH_INFO in has:
        reset = "extract(epoch FROM stats_reset)::float8"
        told = reset, "dealloc::float8", f" FROM {schema}.{EXTENSION}_info"
    reset, evictions, source = told
    read = "extract(epoch FROM clock_timestamp())::float8"
    return f"SELECT {read} AS {READ}, {reset} AS {RESET}, {evictions} AS {EVICTIONS}{source}"


def missing(has: frozenset[str], major: int) -> list[Missing]:
    """What a later version of the extension tells.

    Args:
        has: Columns of its view, which stay what they were when a server is upgraded.
        major: Version of the server.
    """
    return [
        not_before(what, major, first)
        if major < first
        else Missing(what, f"{EXTENSION} is here as an earlier version made it", _UPDATE)
        for what, column, first in _LATER
        if column not in has
    ]


def named(rows: Rows, statements: Mapping[str, Known]) -> Rows:
    """The same rows with name and kind of those that are the workload's, their texts cut.

    Args:
        rows: Their `query` is a text as the extension keeps it.
        statements: The workload's, by their text.
    """
    alike = {without_constants(sql): known for sql, known in statements.items()}
    result = []
    for row in rows:
        text = row["query"]
        known = alike.get(without_constants(text), _NOBODY)
        result.append(
            {**row, "query": text[:_TEXT_CHARS], "statement": known.name, "kind": known.kind}
        )
    return result


def sampler(subject: Subject) -> Found:
    """The snapshot, or why there is none; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    if session.execute(_LOADED.encode()).fetchone() is None:
        return _not_loaded(session, subject.ours)
    if (schema := _schema(session, subject.ours)) is None:
        return without_extension(session, "statements", EXTENSION)
    view = session.execute(_COLUMNS, (f"{schema}.{EXTENSION}",)).fetchall()
    has = frozenset(name for (name,) in view)
    (text, columns), counts = query(schema, has), counts_query(schema, has)
    databases = {"databases": list(subject.databases)}
    statements = known_statements(subject.described) if subject.described else {}
    found: list[Snapshot | Missing] = [
        Snapshot(COUNTS, _COUNTS, lambda: rows_of(session, counts)),
        Snapshot(
            STATEMENTS,
            (*map(Label, _LABELS), *columns),
            lambda: named(rows_of(session, text, databases), statements),
        ),
        *missing(has, major_of(session)),
    ]
    if not reads_all_statistics(session):
        found.append(not_granted(session, "statements of others", "what others have sent"))
    return found


def _schema(session: psycopg.Connection[Any], ours: bool) -> str | None:
    """Where the extension lies; on a server of ours it is put into the database."""
    if ours and may_add_extension(session, EXTENSION):
        add_extension(session, EXTENSION)
    return extension_schema(session, EXTENSION)


def _not_loaded(session: psycopg.Connection[Any], ours: bool) -> Missing:
    """With all that it takes, so that nobody finds the rest in a run later."""
    is_there = ours or extension_schema(session, EXTENSION) is not None
    also = "" if is_there else f" Then CREATE EXTENSION {EXTENSION}; -- {IN_TEMPLATE}"
    return Missing(
        "statements",
        f"the server does not load {EXTENSION}",
        f"Set shared_preload_libraries = '{EXTENSION}', which needs a restart and takes time of"
        f" every statement.{also}",
    )
