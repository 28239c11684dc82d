"""A replica while a run makes use of it: nothing else of pgdyno's drives it meanwhile.

Locks do not come from the primary. So the claim of a run is taken on the replica as well, in the
same database, which did come; whoever wants to drive any database of the replica finds it there.
"""

from __future__ import annotations

from typing import Any

import psycopg

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.session import own_session
from pgdyno.target import advisory_locks
from pgdyno.target.replica import caught_up
from pgdyno.target.server_owner import OWNER


class ReplicaClaim:
    """Held by a session on the replica."""

    def __init__(self, replica: Connection, primary: Connection) -> None:
        """Take it, once the database that it lies in has come.

        Args:
            replica: The standby.
            primary: Its server, which this run owns.

        Raises:
            TargetError: Another pgdyno uses the replica, or it does not follow, or not answer.
        """
        self._replica = replica.to(OWNER)
        caught_up(self._replica, primary)
        self._session = self._take()

    def _take(self) -> psycopg.Connection[Any]:
        try:
            session = own_session(self._replica, name=advisory_locks.own_name())
            try:
                self._require_alone(session)
            except BaseException:
                session.close()
                raise
        except psycopg.Error as error:
            shown = self._replica.shown()
            raise TargetError(f"replica {shown} does not answer: {str(error).strip()}") from error
        return session

    def _require_alone(self, session: psycopg.Connection[Any]) -> None:
        """As on the primary: its own lock first, then whether the other kind is there."""
        replica, fact = f"the replica {self._replica.shown()}", None
        if not advisory_locks.taken(
            session, advisory_locks.RUN, shared=False, patience_s=advisory_locks.PATIENCE_S
        ):
            who = advisory_locks.who_has(session, advisory_locks.RUN, OWNER)
            fact = f"another pgdyno has {replica}: {who}"
        if fact := fact or advisory_locks.use_of(session, replica):
            raise TargetError(
                fact,
                "Wait for its end, or stop it; what it reads there would be counted as the run's.",
            )

    def renew(self) -> None:
        """Take it anew where its session is gone, as after a restart of the replica.

        Raises:
            TargetError: See `ReplicaClaim`.
        """
        try:
            self._session.execute("SELECT")
        except psycopg.Error:
            self._session.close()
            self._session = self._take()

    def release(self) -> None:
        """Give the replica back."""
        self._session.close()
