"""Reads a table of the server at one moment, and waits for nobody's lock."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

_LOCK_TIMEOUT = "SET LOCAL lock_timeout = '1s'"
_SCHEMA = """
SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace
WHERE extname = %s"""

Rows = list[dict[str, Any]]


def rows_of(
    session: psycopg.Connection[Any], query: str, named: dict[str, Any] | None = None
) -> Rows:
    """The rows of a query by the names of its columns.

    Who locks a table for long is not waited for: what is read at one moment is read then, or not.

    Args:
        session: In autocommit mode; what is set for the query ends with it.
        query: One statement, in words of ours alone.
        named: Its parameters.
    """
    with session.transaction(), session.cursor(row_factory=dict_row) as cursor:
        cursor.execute(_LOCK_TIMEOUT)
        return cursor.execute(query.encode(), named).fetchall()


def extension_schema(session: psycopg.Connection[Any], name: str) -> str | None:
    """The schema of an extension's objects, quoted; None: the database does not have it."""
    row = session.execute(_SCHEMA, (name,)).fetchone()
    return row and str(row[0])


def could_have_extension(session: psycopg.Connection[Any], name: str) -> bool:
    """Whether its files are installed on the server's host."""
    found = session.execute("SELECT FROM pg_available_extensions WHERE name = %s", (name,))
    return found.fetchone() is not None


def add_extension(session: psycopg.Connection[Any], name: str) -> None:
    """Put it into the database of a server of ours, whose copy goes with the trial."""
    session.execute(sql.SQL("CREATE EXTENSION IF NOT EXISTS {}").format(sql.Identifier(name)))
