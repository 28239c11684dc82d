"""Sessions and background processes of a server as they are at one moment. Versions 12 to 18.

Asked of the function below pg_stat_activity, which costs half of what the view does. What a role
may not see is left out; processes that have nothing to do are, too.

Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_activity.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.model.wait import Wait, WaitOf
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.statement_names import Known

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
  AND pid <> pg_backend_pid()
  -- Who idles in another database does nothing, and is no session of the load.
  AND (state IS DISTINCT FROM 'idle' OR datid IS NULL OR datid = ANY (%(databases)s::oid[]))"""
_DATABASES = (
    "SELECT coalesce(array_agg(oid::bigint), '{}') FROM pg_database WHERE datname = ANY(%s)"
)
# The server keeps that many bytes of a text, and a zero.
_HASHES = """
SELECT sql, hashtextextended(left(sql, kept.setting::integer - 1), 0)
FROM unnest(%s::text[]) AS sql,
     (SELECT setting FROM pg_settings WHERE name = 'track_activity_query_size') AS kept"""

Row = tuple[Any, ...]  # in the order of the query


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
    """Asks a server for its sessions.

    Args:
        session: To ask with, in autocommit mode.
        databases: Those that are driven.
        statements: The workload's, by their text.
        wait_of: Gives wait events their names and classes.
        own: Sessions of ours that look on, as they come; they are no part of the load.
    """

    def __init__(
        self,
        session: psycopg.Connection[Any],
        databases: Iterable[str],
        statements: Mapping[str, Known],
        wait_of: WaitOf,
        own: Collection[int] = (),
    ) -> None:
        self._wait_of, self._own = wait_of, own
        row = session.execute(_DATABASES, (list(databases),)).fetchone()
        assert row is not None
        self._asked = Prepared(session, _QUERY, {"databases": row[0]})
        hashes = session.execute(_HASHES, (list(statements),)).fetchall()
        self._statements = {hashed: statements[sql] for sql, hashed in hashes}

    def take(self) -> dict[int, Met]:
        """All that are met now, by process."""
        return {
            row[0]: met(row, self._statements, self._wait_of)
            for row in self._asked.rows()
            if row[0] not in self._own
        }


def met(row: Row, statements: Mapping[int, Known], wait_of: WaitOf) -> Met:
    """What a row tells.

    Args:
        row: In the order of the query.
        statements: By the server's hash of their texts.
        wait_of: Gives wait events their names and classes.
    """
    pid, backend_type, state, wait_type, wait_event, hashed = row
    wait = wait_of(wait_type, wait_event) if wait_type and wait_event else None
    statement = _NOBODY if hashed is None else statements.get(hashed, _NOBODY)
    return Met(
        pid, role_of(backend_type), state, wait, statement, hashed, awaits_lock=wait_type == _LOCK
    )


def role_of(backend_type: str) -> str:
    """The role of a process, as in the series `process.<role>`; parallel workers have their own."""
    return _ROLES.get(backend_type, OTHER)
