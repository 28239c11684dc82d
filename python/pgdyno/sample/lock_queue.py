"""Who blocks whom: the queue for locks, as far back as somebody stands who waits for no lock.

Asking for it takes all partitions of the lock table, so it is asked for only while sessions are
seen to wait for locks, and at most twice a second. Between two questions a session keeps its
blocker as long as every sample meets it waiting, in the same statement.

Source: PostgreSQL, "System Information Functions", pg_blocking_pids; "pg_locks".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg

from pgdyno.sample.activity import Met
from pgdyno.sample.prepared import Prepared

PREPARED = 0  # the "process" of a prepared transaction
# Who waits for a row waits for its changer's transaction, and holds the row's place in the queue
# meanwhile: that tells the table.
_QUERY = """
WITH lock AS MATERIALIZED (
  SELECT pid, locktype, mode, granted, relation, database FROM pg_locks
  WHERE NOT granted OR locktype = 'tuple')
SELECT waiter.pid, waiter.locktype, waiter.mode,
       coalesce((SELECT coalesce(nullif(relation::regclass::text, relation::text), '')
                 FROM lock AS one
                 WHERE one.pid = waiter.pid AND one.relation IS NOT NULL
                   AND one.database IN (0, (SELECT oid FROM pg_database
                                            WHERE datname = current_database()))
                 ORDER BY granted LIMIT 1), ''),
       pg_blocking_pids(waiter.pid)
FROM lock AS waiter WHERE NOT waiter.granted"""


@dataclass(frozen=True, slots=True)
class Waiter:
    """A session that waits for a lock."""

    pid: int
    lock: str  # type, as pg_locks says it
    mode: str
    relation: str  # empty: of no table, or one of another database
    blockers: tuple[int, ...]  # those in its way, in front of it in the queue as well


class LockQueue:
    """The queue as it was last asked for.

    Args:
        session: To ask with, in autocommit mode.
    """

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self._asked = Prepared(session, _QUERY)
        self._roots: dict[int, tuple[int, int | None]] = {}  # waiter -> root, hash of statement

    def ask(self, sessions: Mapping[int, Met]) -> list[Waiter]:
        """All that wait for a lock now.

        Args:
            sessions: Who was met in the sample before.
        """
        waiters = [
            Waiter(pid, lock, mode, name, tuple(by))
            for pid, lock, mode, name, by in self._asked.rows()
        ]
        blocked = {waiter.pid: waiter.blockers for waiter in waiters}
        self._roots = {
            pid: (root_of(pid, blocked), sessions[pid].hash) for pid in blocked if pid in sessions
        }
        return waiters

    def root(self, met: Met) -> int | None:
        """Who stands at the head of a session's queue; None: it was not asked since it waits."""
        root, hashed = self._roots.get(met.pid, (None, None))
        return root if hashed == met.hash else None

    def keep(self, waiting: set[int]) -> None:
        """Forget the queues of sessions that do not wait any more."""
        for pid in self._roots.keys() - waiting:
            del self._roots[pid]


def root_of(pid: int, blocked: Mapping[int, tuple[int, ...]]) -> int:
    """The first blocker that is not blocked itself, of several the one first named.

    In a deadlock, which the server has not resolved yet, the one before the circle closes.
    """
    seen = {pid}
    while (by := blocked.get(pid)) and by[0] not in seen:
        pid = by[0]
        seen.add(pid)
    return pid
