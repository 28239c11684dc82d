"""A standby beside a load: it streams, may be lost, or takes over when the primary is."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from pgdyno.drills.kills import kill_all, stand_still
from pgdyno.model.drill import Standing
from pgdyno.model.errors import TargetError
from pgdyno.model.plan import Stage
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.session import own_session
from pgdyno.target.interface import Ready
from pgdyno.target.own_target import OwnTarget
from pgdyno.target.standby import Standby, require_in_sync
from pgdyno.trial.fixture import build_of

_SENDER = "SELECT pid FROM pg_stat_replication LIMIT 1"
_PROMOTE = "SELECT pg_promote(true, 600)"
_SYNC_S = 60.0


class Following:
    """A standby that follows the server of a trial, and what became of it."""

    promotion_s: float | None = None  # until it took over; None: it has not

    def __init__(self, ready: Ready, standby: Standby, standing: Standing) -> None:
        self._ready = ready
        self._standby = standby
        self._standing = standing

    def strike(self, over: threading.Event) -> None:
        """What is to be lost is lost, now; the standby takes over where the primary was.

        Args:
            over: Set when the load has ended, which nothing waits for then.

        Raises:
            TargetError: A process is not there, or the standby does not take over.
        """
        standing, primary = self._standing, self._ready.postmaster_pid
        assert primary is not None, "only servers of ours are drilled"
        if standing.behind_s:
            stand_still(self._ready, _SENDER)
            over.wait(standing.behind_s)
        began = time.monotonic()
        if standing.lost != "standby":
            kill_all(primary)
        if standing.lost != "primary":
            kill_all(self._standby.cluster.pid)
        if standing.takes_over:
            self._promote()
            self.promotion_s = time.monotonic() - began

    def _promote(self) -> None:
        try:
            with own_session(self._standby.cluster.connection()) as session:
                row = session.execute(_PROMOTE).fetchone()
        except psycopg.Error as error:
            raise TargetError(f"the standby does not take over: {error}") from error
        if row != (True,):
            raise TargetError("the standby has not taken over within 600 s")


@contextmanager
def following(
    target: OwnTarget, stage: Stage, ready: Ready, standing: Standing | None
) -> Iterator[Following | None]:
    """A standby of the server of a trial, while its load is driven; then its data alone are left.

    Args:
        target: Of the trial.
        stage: Its settings are those of both.
        ready: The server.
        standing: None: there is none.

    Raises:
        TargetError: It cannot be made, or does not stream.
    """
    if standing is None:
        yield None
        return
    standby = target.standby(build_of(stage))
    try:
        standby.start(stage.settings)
        if standing.synchronous:
            target.cluster.reconfigure((*stage.settings, _waits_for_it()))
            with own_session(ready.connection) as session:
                require_in_sync(session, _SYNC_S)
        found = Following(ready, standby, standing)
        yield found
        standby.stop(clean=found.promotion_s is not None)
    finally:
        standby.close()


def _waits_for_it() -> Setting:
    origin = Origin(OriginKind.TARGET, "a drill with a synchronous standby")
    return Setting("synchronous_standby_names", "*", origin)
