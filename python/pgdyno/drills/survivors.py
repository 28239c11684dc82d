"""What a server that came back has of what it had acknowledged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import psycopg

from pgdyno.drills.ledger import Key
from pgdyno.model.connection import Connection
from pgdyno.model.description import Description, WitnessQuery
from pgdyno.model.errors import PlanError
from pgdyno.model.wording import plural
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
                rows.update((part, kind, *row) for row in _of(session, query, since_unix_us))
    return rows


def require_none_yet(
    databases: Sequence[Connection], description: Description, since_unix_us: int
) -> None:
    """Look before a load whether its commits can be found again.

    Args:
        databases: See `rows_of`.
        description: The same.
        since_unix_us: The same.

    Raises:
        PlanError: A witness cannot be asked, or finds rows already.
    """
    for database in databases:
        with own_session(database) as session:
            for query in description.witnesses:
                try:
                    already = len(_of(session, query, since_unix_us))
                except psycopg.Error as error:
                    why = " ".join(str(error).split())
                    raise PlanError(
                        f"the witness of {query.kind} cannot be asked: {why}",
                        "It is a query of one column, the `:request_id` of committed requests.",
                    ) from error
                if already:
                    raise PlanError(
                        f"the witness of {query.kind}, asked before the load begins, finds"
                        f" {plural(already, 'row')}",
                        "Let it leave out what was there before.",
                    )


def _of(
    session: psycopg.Connection[Any], query: WitnessQuery, since_unix_us: int
) -> list[tuple[int, ...]]:
    cursor = psycopg.RawCursor(session)
    cursor.execute(query.sql.encode(), (since_unix_us,))
    return cursor.fetchall()
