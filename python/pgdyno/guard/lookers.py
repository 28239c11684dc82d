"""Threads that look at the servers again and again, so that none of them can stop the daemon.

A session may hang for as long as a network likes. What the daemon judges by is what was seen last
and how long ago that is; it never waits for an answer itself.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import psycopg

from pgdyno.guard.answers import Answers, NotTaken
from pgdyno.guard.configured import Configured
from pgdyno.guard.facts import CYCLES, Contents, PrimaryFacts, StandbyFacts
from pgdyno.guard.observe import (
    asking_within,
    connect,
    first_line,
    look_at_primary,
    look_at_standby,
    look_into_databases,
)
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PgdynoError

_AGAIN_S = 10.0  # after an answer that no PostgreSQL gives

T = TypeVar("T")
Reach = Callable[[], Connection]


@dataclass(frozen=True, slots=True)
class Look(Generic[T]):
    """What was seen, and when; or why nothing was."""

    facts: T | None
    error: str
    at_s: float  # monotonic; of the answer, which is younger than what it says


class Looker(Generic[T]):
    """A thread that asks one server the same again and again."""

    def __init__(
        self, reach: Reach, answer_s: float, pause_s: float,
        look: Callable[[Answers], T],
    ) -> None:  # fmt: skip
        self._reach, self._answer_s, self._pause_s, self._look = reach, answer_s, pause_s, look
        self._over = threading.Event()
        self._last: Look[T] = Look(None, "no answer yet", time.monotonic())
        # A daemonic one: a session that hangs must not keep the process from ending.
        self._thread = threading.Thread(target=self._work, daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Ask no more; does not wait for an answer that is out."""
        self._over.set()

    def seen(self, fresh_s: float) -> Look[T]:
        """The last look, if it is not older than so."""
        last = self._last
        age_s = time.monotonic() - last.at_s
        if last.facts is not None and age_s > fresh_s:
            return Look(None, f"no answer for {age_s:.0f} s", last.at_s)
        return last

    def _work(self) -> None:
        with asking_within(self._answer_s) as asked:
            while not self._over.is_set():
                pause_s = self._pause_s
                try:
                    connect(asked, self._reach(), self._answer_s)
                    while not self._over.is_set():
                        self._take(self._look(asked), "", time.monotonic())
                        self._over.wait(self._pause_s)
                except psycopg.Error as error:
                    self._take(None, first_line(error), time.monotonic())
                    if isinstance(error, NotTaken):  # which took the process that listened
                        pause_s = max(pause_s, _AGAIN_S)
                except PgdynoError as error:
                    self._take(None, error.fact, time.monotonic())
                self._over.wait(pause_s)

    def _take(self, facts: T | None, error: str, at_s: float) -> None:
        self._last = Look(facts, error, at_s)


class Redos:
    """The redo pointers of the primary's last checkpoints, as they were seen."""

    def __init__(self) -> None:
        self._seen: list[int] = []

    def oldest(self) -> int | None:
        """That of `CYCLES` checkpoints before the last; None: so many were not seen yet."""
        return self._seen[0] if len(self._seen) > CYCLES else None

    def take(self, redo_lsn: int) -> None:
        """Take in what the primary has now."""
        if redo_lsn not in self._seen[-1:]:
            self._seen = [*self._seen[-CYCLES:], redo_lsn]


def primary_looker(reach: Reach, answer_s: float, pause_s: float) -> Looker[PrimaryFacts]:
    """Looks at the primary."""
    redos, configured = Redos(), Configured()

    def look(asked: Answers) -> PrimaryFacts:
        found = look_at_primary(asked, redos.oldest(), configured)
        redos.take(found.redo_lsn)
        return found

    return Looker(reach, answer_s, pause_s, look)


def standby_looker(reach: Reach, answer_s: float, pause_s: float) -> Looker[StandbyFacts]:
    """Looks at the standby."""
    configured = Configured()
    return Looker(reach, answer_s, pause_s, lambda asked: look_at_standby(asked, configured))


def contents_looker(reach: Reach, answer_s: float, pause_s: float) -> Looker[Contents]:
    """Looks into the primary's databases."""

    def look(asked: Answers) -> Contents:
        return look_into_databases(asked, reach(), answer_s)

    return Looker(reach, answer_s, pause_s, look)


class Lag:
    """How old the oldest WAL is that the primary has flushed and the standby not replayed."""

    _MOST = 4000

    def __init__(self) -> None:
        self._flushed: list[tuple[float, int]] = []  # when, up to where

    def age_s(self, flush_lsn: int | None, replay_lsn: int | None, now_s: float) -> float:
        """Take in what was seen, and tell the age.

        Args:
            flush_lsn: Of the primary; None: not seen.
            replay_lsn: Of the standby; None: not seen, and taken to stand still.
            now_s: Monotonic.
        """
        if flush_lsn is not None and (not self._flushed or flush_lsn > self._flushed[-1][1]):
            self._flushed.append((now_s, flush_lsn))
        if replay_lsn is not None:
            self._flushed = [one for one in self._flushed if one[1] > replay_lsn]
        if len(self._flushed) > self._MOST:
            del self._flushed[1::2]  # the oldest stays
        return now_s - self._flushed[0][0] if self._flushed else 0.0
