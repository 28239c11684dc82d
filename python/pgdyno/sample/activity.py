"""Sessions and background processes of a server as they are at one moment. Versions 12 to 18.

Asked of the function below pg_stat_activity, which costs half of what the view does. What a role
may not see is left out; processes that have nothing to do are, too.

Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_activity.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.catalog.waits import Wait, wait_of
from pgdyno.workload.statement_names import Known

SAMPLER_NAME = "pgdyno sampler"
"""`application_name` of sessions that look on; they are no part of the load."""
BACKEND = "backend"
OTHER = "other"
_ROLES = {
    "client backend": BACKEND,
    "parallel worker": "parallel_worker",
    "checkpointer": "checkpointer",
    "background writer": "background_writer",
    "walwriter": "wal_writer",
    "io worker": "io_worker",
    "autovacuum launcher": "autovacuum",
    "autovacuum worker": "autovacuum",
    "walsender": "walsender",
    "startup": "startup",
}
_LOCK = "Lock"
_NOBODY = Known("", "")

_QUERY = """
SELECT pid, backend_type, coalesce(state, ''), wait_event_type, wait_event,
       CASE WHEN state <> 'idle' AND datid = ANY (%(databases)s::oid[])
            THEN hashtextextended(query, 0) END
FROM pg_stat_get_activity(NULL)
WHERE backend_type IS NOT NULL AND wait_event_type IS DISTINCT FROM 'Activity'
  AND pid <> pg_backend_pid() AND application_name IS DISTINCT FROM %(sampler)s"""
_DATABASES = "SELECT coalesce(array_agg(oid::bigint), '{}') FROM pg_database WHERE datname = ANY(%s)"
# The server keeps that many bytes of a text, and a zero.
_HASHES = """
SELECT sql, hashtextextended(left(sql, kept.setting::integer - 1), 0)
FROM unnest(%s::text[]) AS sql,
     (SELECT setting FROM pg_settings WHERE name = 'track_activity_query_size') AS kept"""

Row = tuple[int, str, str, str | None, str | None, int | None]


@dataclass(frozen=True, slots=True)
class Met:
    """A session or background process, as one sample met it."""

    pid: int
    role: str
    state: str  # as PostgreSQL says it; empty: it is no session
    wait: Wait | None  # None: it waits for no event
    statement: Known  # its names are empty where it is none of ours
    hash: int | None  # of the statement's text
    awaits_lock: bool  # that some session holds


class Activity:
    """Asks a server for its sessions, and remembers what it said last.

    Args:
        session: To ask with, in autocommit mode.
        databases: Those that are driven.
        statements: The workload's, by their text.
    """

    def __init__(
        self,
        session: psycopg.Connection[Any],
        databases: Iterable[str],
        statements: Mapping[str, Known],
    ) -> None:
        self._cursor = session.cursor(binary=True)
        row = session.execute(_DATABASES, (list(databases),)).fetchone()
        assert row is not None
        self._named = {"databases": row[0], "sampler": SAMPLER_NAME}
        hashes = session.execute(_HASHES, (list(statements),)).fetchall()
        self._statements = {hashed: statements[sql] for sql, hashed in hashes}
        self.last: dict[int, Met] = {}

    def take(self) -> dict[int, Met]:
        """All that are met now, by process."""
        rows = self._cursor.execute(_QUERY, self._named, prepare=True).fetchall()
        self.last = {row[0]: met(row, self._statements) for row in rows}
        return self.last


def met(row: Row, statements: Mapping[int, Known]) -> Met:
    """What a row tells.

    Args:
        row: In the order of the query.
        statements: By the server's hash of their texts.
    """
    pid, backend_type, state, wait_type, wait_event, hashed = row
    wait = wait_of(wait_type, wait_event) if wait_type and wait_event else None
    statement = _NOBODY if hashed is None else statements.get(hashed, _NOBODY)
    return Met(
        pid, role_of(backend_type), state, wait, statement, hashed, awaits_lock=wait_type == _LOCK
    )


def role_of(backend_type: str) -> str:
    """The role of a process: that of the series `process.<role>`, and `parallel_worker`."""
    return _ROLES.get(backend_type, OTHER)
