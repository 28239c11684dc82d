"""Shows whoever looks on what is sampled while a window is driven: a glance a second.

It reads what recorders have kept, in a thread of its own, and the new lines of the server's log. No
sampler waits for it, no server is asked; where nobody looks on there is no thread.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pgdyno.model.glance import Glance
from pgdyno.model.host_time import HOST_IDLE_COLUMNS, is_of_one_cpu
from pgdyno.model.steady_clock import steady_unix_ns
from pgdyno.sample.recorder import Recorder
from pgdyno.sample.server_log import LogFollower
from pgdyno.target.server_log import LogTail
from pgdyno.trial.progress import Onlooker

PACE_S = 1.0
_EVENTS_MAX = 60  # of a glance
_DEVICES = ("device.", "disk.")
_NS = 1e9


class Glances:
    """Takes glances at a trial.

    Args:
        recorders: Of this host, then of the server; sessions are those of the last that has any.
        tail: The server's log; None: it is not ours to read.
        now_ns: The time of the day, as it goes evenly; None: from now on.
    """

    def __init__(
        self,
        recorders: Sequence[Recorder],
        tail: LogTail | None,
        now_ns: Callable[[], int] | None = None,
    ) -> None:
        self._increments = [one.increments(_is_told) for one in recorders]
        self._tail, self._log = tail, LogFollower()
        self._now_ns = now_ns or steady_unix_ns()
        self._began_ns = self._now_ns()

    def next(self) -> Glance:
        """What was seen since the glance before."""
        ended = self._log.hear(self._tail.new_lines()) if self._tail else ()
        return Glance(
            began_ns=self._began_ns,
            taken_s=(self._now_ns() - self._began_ns) / _NS,
            grown=tuple(one for each in self._increments for one in each.grown()),
            met=next((met for each in self._increments if (met := each.met())), None),
            ended=ended[-_EVENTS_MAX:],
            counts=dict(Counter(one.kind for one in ended)),
            under_way=self._log.under_way[:_EVENTS_MAX],
            unread_bytes=self._tail.unread_bytes if self._tail else 0,
            follows_log=self._tail is not None,
        )


def _is_told(column: str) -> bool:
    return column.startswith(_DEVICES) or column in HOST_IDLE_COLUMNS or is_of_one_cpu(column)


@contextmanager
def looking_on(
    listener: object, recorders: Sequence[Recorder], tail: LogTail | None
) -> Iterator[None]:
    """Glances are taken while it is entered.

    Args:
        listener: Who is told how a run goes; glances are for those alone who have a use for them.
        recorders: See `Glances`.
        tail: The same.
    """
    if not isinstance(listener, Onlooker):
        yield
        return
    glances, ends = Glances(recorders, tail), threading.Event()

    def look() -> None:
        while not ends.wait(PACE_S):
            listener.glance(glances.next())

    thread = threading.Thread(target=look, name="pgdyno onlooker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()
