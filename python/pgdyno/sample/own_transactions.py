"""What sessions that look on commit themselves in the driven databases, to be told from the load's.

The server counts their transactions with all others: each look of theirs is one. So each counts
what it has ended, and has the server told of all of it right before the server's own count is read:
both are of one moment then, and their difference is what others did, exactly.
"""

from __future__ import annotations

from typing import Any

import psycopg

from pgdyno.sample.lacking import is_on, major_of, not_before, switched_off
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Missing, Row, Subject
from pgdyno.sample.session import CountingSession

NAME = "commits of sessions that look on"
COLUMNS = (Column("database.own_commits", "1"), Column("database.own_rollbacks", "1"))
_TOLD_SINCE = 15  # major version: before, what is counted is told some time later
_COUNTED_WITH = "track_counts"
# A session that has met no table tells nothing, not even when it is asked to.
_TELL = """
SELECT pg_stat_force_next_flush() FROM pg_database WHERE datname = current_database()"""
_BESIDE = """
SELECT count(*) FROM pg_stat_activity
WHERE pid = ANY(%s) AND pid <> pg_backend_pid() AND datname = ANY(%s)"""


class OwnTransactions:
    """Those of the only session of ours in the driven databases.

    Args:
        session: It, in autocommit mode.
        driven: Whether it is in one of them; else it has none there.
    """

    def __init__(self, session: CountingSession, *, driven: bool) -> None:
        self._session = session
        self._tell = Prepared(session, _TELL) if driven else None

    def told(self) -> Row:
        """Have the server told of all that ended, and say how many there were."""
        if self._tell is None:
            return dict.fromkeys((column.name for column in COLUMNS), 0.0)
        self._tell.rows()
        values = self._session.committed, self._session.rolled_back
        return {one.name: float(value) for one, value in zip(COLUMNS, values, strict=True)}


def own_transactions(
    subject: Subject, session: psycopg.Connection[Any]
) -> OwnTransactions | Missing:
    """What counts them, or why nobody can.

    Args:
        subject: Has the driven databases, and all sessions of ours that look on.
        session: That reads the server's own count.
    """
    if (major := major_of(session)) < _TOLD_SINCE:
        return not_before(NAME, major, _TOLD_SINCE)
    if not is_on(session, _COUNTED_WITH):
        return switched_off(NAME, _COUNTED_WITH)
    if not isinstance(session, CountingSession) or session.unsure:
        return Missing(NAME, getattr(session, "unsure", "") or "the session does not count them")
    names = list(subject.databases)
    row = session.execute(_BESIDE, (list(subject.own_pids), names)).fetchone()
    if row != (0,):
        return Missing(NAME, "further sessions of pgdyno's own look on in the driven database")
    return OwnTransactions(session, driven=session.info.dbname in names)
