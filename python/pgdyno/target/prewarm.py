"""Reads the fixture into memory before a trial, the same way in every stage."""

from __future__ import annotations

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.session import own_session

_PREWARM = """
SELECT coalesce(sum(pg_prewarm(c.oid, 'buffer')), 0)
FROM pg_class c
JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'i', 'm') AND c.relpersistence <> 't'
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
"""


def prewarm(connection: Connection) -> int:
    """Read all tables of the database and their indexes into shared buffers and page cache.

    Returns:
        Number of blocks read.

    Raises:
        TargetError: The extension pg_prewarm is not there.
    """
    try:
        with own_session(connection) as session:
            row = session.execute(_PREWARM).fetchone()
    except psycopg.errors.UndefinedFunction as error:
        raise TargetError(
            "the database has no pg_prewarm",
            hint="Create the extension there, or set protocol.prewarm = false.",
        ) from error
    assert row is not None
    return int(row[0])
