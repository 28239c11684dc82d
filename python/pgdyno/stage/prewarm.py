"""Reads the fixture into memory before a trial, the same way in every stage."""

from __future__ import annotations

from collections.abc import Sequence

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError

_PREWARM = """
SELECT coalesce(sum(pg_prewarm(c.oid, 'buffer')), 0)
FROM pg_class c
WHERE c.oid IN (SELECT unnest(%(tables)s::regclass[])
                UNION ALL
                SELECT indexrelid FROM pg_index WHERE indrelid = ANY (%(tables)s::regclass[]))
"""


def prewarm(connection: Connection, tables: Sequence[str]) -> int:
    """Read tables and their indexes into shared buffers (and so into the page cache).

    Returns:
        Number of blocks read.

    Raises:
        TargetError: The extension pg_prewarm is not there.
    """
    try:
        with psycopg.connect(**connection.arguments(), autocommit=True) as session:
            row = session.execute(_PREWARM, {"tables": list(tables)}).fetchone()
    except psycopg.errors.UndefinedFunction as error:
        raise TargetError(
            "the database has no pg_prewarm",
            hint="Create the extension there, or set protocol.prewarm = false.",
        ) from error
    assert row is not None
    return int(row[0])
