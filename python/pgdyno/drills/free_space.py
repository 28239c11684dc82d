"""Maps of free space, by use: each can be read, and a row finds a page with room.

What such a map says is a hint. It is written without WAL, a torn page of it is emptied by whoever
reads it, and a page that has less room than it says is left for another one: so what it says is
held against nothing, and only what hinders a row counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.session import own_session

_HAS_READER = "SELECT FROM pg_available_extensions WHERE name = 'pg_freespacemap'"
_RELATIONS = """
SELECT oid, oid::regclass::text FROM pg_class
WHERE relkind IN ('r', 'm', 't', 'i') AND oid >= 16384 ORDER BY 2
"""
_TABLES = """
SELECT c.oid::regclass::text, string_agg(quote_ident(a.attname), ', ' ORDER BY a.attnum)
FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid
WHERE c.relkind = 'r' AND c.oid >= 16384
  AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
GROUP BY c.oid ORDER BY 1
"""
_QUIET = "SET LOCAL session_replication_role = replica"  # no trigger does more than the row
_ROW_AGAIN = """
INSERT INTO {table} ({columns}) OVERRIDING SYSTEM VALUE
SELECT {columns} FROM ONLY {table} LIMIT 1
"""
_AGAINST_CONSTRAINT = "23"
"""Class of what says that a row is there already: it was on a page then."""


def free_space(databases: Sequence[Connection]) -> list[str]:
    """What is wrong with maps of free space of tables and indexes."""
    found: list[str] = []
    for database in databases:
        with own_session(database) as session:  # a new one: it knows no page but by the maps
            found += [f"{what} in {database.database}: {why}." for what, why in _wrong(session)]
    return found


def _wrong(session: psycopg.Connection[Any]) -> Iterator[tuple[str, str]]:
    if session.execute(_HAS_READER).fetchone() is not None:
        session.execute("CREATE EXTENSION IF NOT EXISTS pg_freespacemap")
        for oid, name in session.execute(_RELATIONS).fetchall():
            try:
                session.execute("SELECT count(avail) FROM pg_freespace(%s::oid)", (oid,))
            except psycopg.Error as error:
                yield f"The map of free space of {name} cannot be read", _first_line(error)
    for table, columns in session.execute(_TABLES).fetchall():
        query = _ROW_AGAIN.format(table=table, columns=columns)
        try:
            with session.transaction(force_rollback=True):
                session.execute(_QUIET)
                session.execute(query.encode())
        except psycopg.Error as error:
            if not (error.sqlstate or "").startswith(_AGAINST_CONSTRAINT):
                yield f"{table} takes no further row", _first_line(error)


def _first_line(error: psycopg.Error) -> str:
    return str(error).strip().partition("\n")[0]
