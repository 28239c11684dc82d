"""Reads all samplers in a thread of its own, each at its interval, and gives columns back.

The times are those of the sample, not those intended: a delayed sample stays honest. What would be
late for a whole interval is skipped and counted, never made up. What each costs is measured, too.
They are of a clock that goes evenly, as the driver's, whatever is done to that of the host.
"""

from __future__ import annotations

import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from math import inf
from typing import Any, Literal, TypeAlias

import numpy as np
import psycopg

from pgdyno.model.plan import Telemetry
from pgdyno.model.run import (
    Missing,
    SamplerCost,
    Series,
    SnapshotRows,
    TallySeries,
    TelemetryReport,
)
from pgdyno.model.steady_clock import steady_unix_ns
from pgdyno.sample.account import RETRY_S, Account
from pgdyno.sample.increments import SESSIONS, Increments
from pgdyno.sample.kept import KeptSeries, KeptTally, snapshot_rows
from pgdyno.sample.link import Link
from pgdyno.sample.sampler import Sampler, Snapshot, Tally
from pgdyno.sample.timetable import Timetable, at_start

Readable: TypeAlias = Sampler | Tally | Snapshot
_End = Literal["begin", "end"]
_Word = Literal["begin", "end", "stop"]
_ANSWER_S = 60.0  # for one look at a server, of several statements: each has a limit of its own
_PAUSE_S = 1.0  # between two looks whether the thread has come to its end
_NO_SESSION = "the session on the server was lost"


class Recorder:
    """Records from `__enter__` to `__exit__`, first and last sample included.

    All samplers are read by one thread, so that none needs to know of another that uses the same
    session. Whoever enters waits for the first samples, and whoever leaves for the last, but not
    for a server that does not answer: see `_ANSWER_S`.
    """

    def __init__(
        self,
        found: Sequence[Readable | Missing],
        telemetry: Telemetry = "default",
        *,
        unix_ns: Callable[[], int] | None = None,
        place: Callable[[], float] | None = None,
        link: Link | None = None,
    ) -> None:
        """Record what was found.

        Args:
            found: By `samplers_of`; their names and columns differ.
            telemetry: The set that they are of, for the report.
            unix_ns: The clock; None: that of the day now, going evenly from now on.
            place: Where in its interval a tally looks, 0 to below 1; None: at random.
            link: To the server that all of them are of; None: what fails is not asked again.
        """
        self._readable = [one for one in found if not isinstance(one, Missing)]
        self._missing = tuple(one for one in found if isinstance(one, Missing))
        _require_distinct(self._readable)
        self._telemetry = telemetry
        self._unix_ns = unix_ns or steady_unix_ns()
        self._place = place or np.random.default_rng().random
        self._link = link
        self._accounts = {one.name: Account(_interval_s(one)) for one in self._readable}
        self._asks: dict[str, Callable[[], Any]] = {one.name: one.take for one in self._readable}
        self._series = {o.name: KeptSeries(o) for o in self._readable if isinstance(o, Sampler)}
        self._tallies = {o.name: KeptTally(o) for o in self._readable if isinstance(o, Tally)}
        self._snapshots: list[SnapshotRows] = []
        self._words: queue.SimpleQueue[_Word] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="pgdyno sampler", daemon=True)
        self._begun = threading.Event()
        self._tables: dict[str, Timetable] = {}
        self._retry_s: dict[str, float] = {}  # samplers that failed, and when they are asked again
        self._reopen_s = 0.0  # when a lost session is opened anew
        self._asked_s: float | None = None  # since when a look lasts; None: there is none
        self._leaving = False
        self._cpu_ns = 0
        self._began_s = self._ended_s = 0.0

    def __enter__(self) -> Recorder:
        self._began_s = time.monotonic()
        self._thread.start()
        try:
            while not self._begun.wait(_PAUSE_S) and not self._hangs():
                pass
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._words.put("stop")
            while self._thread.is_alive() and not self._hangs():
                self._thread.join(_PAUSE_S)
        finally:
            self._leave()

    def _hangs(self) -> bool:
        asked_s = self._asked_s
        return bool(self._link and asked_s and time.monotonic() - asked_s > _ANSWER_S)

    def _leave(self) -> None:
        """Have the thread end, whatever it waits for: nobody may close its session before."""
        self._leaving = self._link is not None
        self._words.put("stop")
        while self._link and self._thread.is_alive():
            self._link.cut()
            self._thread.join(_PAUSE_S)
        self._ended_s = time.monotonic()
        for account in self._accounts.values():
            account.ended(self._ended_s)

    def window_begins(self) -> None:
        """Have the snapshots read for the first time; returns at once."""
        self._words.put("begin")

    def window_ends(self) -> None:
        """Have the snapshots read once more; returns at once."""
        self._words.put("end")

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        began_ns = time.thread_time_ns()
        try:
            self.take()
            self._loop()
            self.take()
        finally:
            self._begun.set()
            self._cpu_ns += time.thread_time_ns() - began_ns

    def _loop(self) -> None:
        begin_s = time.monotonic()
        for one in self._readable:
            if isinstance(one, Sampler):
                self._tables[one.name] = table = Timetable(begin_s, one.interval_s, at_start)
                table.done(begin_s)  # it was taken when the recorder was entered
            elif isinstance(one, Tally):
                self._tables[one.name] = Timetable(begin_s, one.interval_s, self._place)
        self._begun.set()
        while (word := self._next_word()) != "stop":
            if word is None:
                self._take_due()
            else:
                self._take_snapshots(word)
        for name, table in self._tables.items():
            table.ended(time.monotonic())
            self._accounts[name].late = table.lost

    def _next_word(self) -> _Word | None:
        """What is said until something is due; None: something is."""
        due = min((table.due_s for table in self._tables.values()), default=None)
        try:
            wait_s = None if due is None else max(0.0, due - time.monotonic())
            return self._words.get(timeout=wait_s)
        except queue.Empty:
            return None

    def _take_due(self) -> None:
        for one in self._readable:
            table = self._tables.get(one.name)
            if table is not None and table.due_s <= time.monotonic():
                account = self._accounts[one.name]
                account.untold += not self._take(one)
                table.done(time.monotonic())
                account.late = table.lost
                if account.failure is not None:
                    del self._tables[one.name]

    def _take_snapshots(self, at: _End) -> None:
        for one in self._readable:
            if isinstance(one, Snapshot):
                self._take(one, at)

    # -- reading --------------------------------------------------------------------------------

    def take(self) -> None:
        """Take every series once. A sampler that fails for good is named and not asked again."""
        for one in self._readable:
            if isinstance(one, Sampler):
                self._take(one)

    def _take(self, one: Readable, at: _End = "begin") -> bool:
        """Whether it told something."""
        account = self._accounts[one.name]
        if account.failure is not None or not self._may_ask(one):
            return False
        takes = account.takes
        began_ns, self._asked_s = time.thread_time_ns(), time.monotonic()
        try:
            self._keep(one, at)
        except Exception as error:
            self._failed(one, error)
        else:
            account.told(time.monotonic())
        account.cpu_ns += time.thread_time_ns() - began_ns
        self._asked_s = None
        return account.takes > takes

    def _keep(self, one: Readable, at: _End) -> None:
        if isinstance(one, Sampler):
            row = self._asks[one.name]()
            self._series[one.name].add(self._unix_ns(), row)
        elif isinstance(one, Tally):
            keys = self._asks[one.name]()
            self._tallies[one.name].add(self._unix_ns(), keys)
        else:
            rows = self._asks[one.name]()
            self._snapshots.append(snapshot_rows(one, at, self._unix_ns(), rows))

    # -- what fails -----------------------------------------------------------------------------

    def _failed(self, one: Readable, error: Exception) -> None:
        """Have it asked again where the failure may pass: a lock, a limit, a lost session."""
        now_s, why = time.monotonic(), _first_line(error)
        account = self._accounts[one.name]
        is_lost = self._link is not None and self._link.is_lost
        passes = is_lost or (self._link and isinstance(error, psycopg.OperationalError))
        if isinstance(one, Snapshot) or not passes:
            account.failure = why
        else:
            account.failed(now_s, why)
            self._retry_s[one.name] = now_s + RETRY_S
        if is_lost:
            self._reopen_s = now_s
            self._lost(why)

    def _lost(self, why: str) -> None:
        """Nobody tells anything until there is a session again; the first reason stands."""
        for name in (*self._series, *self._tallies):
            self._accounts[name].failed(time.monotonic(), why)

    def _may_ask(self, one: Readable) -> bool:
        if self._leaving:
            return False
        if self._link is not None and self._link.is_lost:
            self._lost(_NO_SESSION)
            if not self._reopened(self._link):
                if isinstance(one, Snapshot):
                    self._accounts[one.name].failure = _NO_SESSION
                return False
        return self._retry_s.get(one.name, 0.0) <= time.monotonic()

    def _reopened(self, link: Link) -> bool:
        if time.monotonic() < self._reopen_s:
            return False
        self._asked_s = time.monotonic()
        try:
            found = link.again()
        except Exception:  # what it lost its session by is told; it is tried until the end
            self._reopen_s = time.monotonic() + RETRY_S
            return False
        finally:
            self._asked_s = None
        self._asks |= {
            one.name: one.take
            for one in found
            if not isinstance(one, Missing) and one.name in self._asks
        }
        self._retry_s.clear()
        return True

    # -- while it records -----------------------------------------------------------------------

    def increments(self, names: Callable[[str], bool]) -> Increments:
        """What it keeps from now on, for whoever looks on.

        Args:
            names: Which counters are told.
        """
        return Increments(self._series.values(), self._tallies.get(SESSIONS), names)

    # -- what was recorded ----------------------------------------------------------------------

    def series(self) -> list[Series]:
        """The series, a column each."""
        return [series for kept in self._series.values() for series in kept.series()]

    def tallies(self) -> list[TallySeries]:
        """The tallies."""
        return [series for kept in self._tallies.values() for series in kept.series()]

    def snapshots(self) -> list[SnapshotRows]:
        """The snapshots, in the order in which they were read."""
        return list(self._snapshots)

    def telemetry(self) -> TelemetryReport:
        """What was read, what that cost, and what could not be."""
        seconds = self._ended_s - self._began_s
        return TelemetryReport(
            self._telemetry,
            seconds,
            self._cpu_ns / 1e9,
            tuple(_cost(one, self._accounts[one.name], seconds) for one in self._readable),
            self._missing,
        )


def _cost(one: Readable, account: Account, seconds: float) -> SamplerCost:
    kind: Literal["series", "tally", "snapshot"] = "series"
    if not isinstance(one, Sampler):
        kind = "tally" if isinstance(one, Tally) else "snapshot"
    return SamplerCost(
        one.name, kind, account.takes, account.lost, account.cpu_ns / 1e9, one.budget_us,
        account.failure, account.gap_s, account.gap_reason, seconds,
    )  # fmt: skip


def _interval_s(one: Readable) -> float:
    return inf if isinstance(one, Snapshot) else one.interval_s


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__


def _require_distinct(readable: Sequence[Readable]) -> None:
    names = [one.name for one in readable]
    columns = [c.name for one in readable if isinstance(one, Sampler) for c in one.columns]
    for named in (names, columns):
        twice = sorted(name for name, times in Counter(named).items() if times > 1)
        assert not twice, f"samplers share a name: {', '.join(twice)}"
