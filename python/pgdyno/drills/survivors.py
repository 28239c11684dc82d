"""What a server that came back has of what it had acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import psycopg

from pgdyno.drills.ledger import Key
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description
from pgdyno.session import own_session

_BY_TABLE = (
    "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off"
)
"""An index may have lost what its table has, and the other way round: the table is asked."""


def rows_of(
    databases: Sequence[Connection], description: Description, since_unix_us: int
) -> Counter[Key]:
    """How many rows there are of each key that a request may leave.

    Args:
        databases: That were driven, in the order of the driver's parts.
        description: Of the workload: how its rows are found.
        since_unix_us: Begin of the load, in microseconds since 1970; older rows are not its own.

    Raises:
        psycopg.Error: A table cannot be read.
    """
    rows: Counter[Key] = Counter()
    for part, database in enumerate(databases):
        with own_session(database) as session:
            session.execute(_BY_TABLE)
            for query in description.witnesses:
                kind = description.kinds.index(query.kind)
                cursor = psycopg.RawCursor(session)
                cursor.execute(query.sql.encode(), (since_unix_us,))
                rows.update((part, kind, *row) for row in cursor)
    return rows
