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
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from pgdyno.model.counters import fell
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
from pgdyno.sample.kept import KeptSeries, KeptTally, snapshot_rows
from pgdyno.sample.sampler import Sampler, Snapshot, Tally
from pgdyno.sample.timetable import Timetable, at_start

Readable: TypeAlias = Sampler | Tally | Snapshot
_End = Literal["begin", "end"]
_Word = Literal["begin", "end", "stop"]


@dataclass(slots=True)
class _Account:
    """What one sampler did so far."""

    takes: int = 0
    lost: int = 0
    cpu_ns: int = 0
    failure: str | None = None


class Recorder:
    """Records from `__enter__` to `__exit__`, first and last sample included.

    All samplers are read by one thread, so that none needs to know of another that uses the same
    session; only the first samples are taken by who enters, and the last by who leaves.
    """

    def __init__(
        self,
        found: Sequence[Readable | Missing],
        telemetry: Telemetry = "default",
        *,
        unix_ns: Callable[[], int] | None = None,
        place: Callable[[], float] | None = None,
    ) -> None:
        """Record what was found.

        Args:
            found: By `samplers_of`; their names and columns differ.
            telemetry: The set that they are of, for the report.
            unix_ns: The clock; None: that of the day now, going evenly from now on.
            place: Where in its interval a tally looks, 0 to below 1; None: at random.
        """
        self._readable = [one for one in found if not isinstance(one, Missing)]
        self._missing = tuple(one for one in found if isinstance(one, Missing))
        _require_distinct(self._readable)
        self._telemetry = telemetry
        self._unix_ns = unix_ns or steady_unix_ns()
        self._place = place or np.random.default_rng().random
        self._accounts = {one.name: _Account() for one in self._readable}
        self._series = {o.name: KeptSeries(o) for o in self._readable if isinstance(o, Sampler)}
        self._tallies = {o.name: KeptTally(o) for o in self._readable if isinstance(o, Tally)}
        self._snapshots: list[SnapshotRows] = []
        self._words: queue.SimpleQueue[_Word] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._loop, name="pgdyno sampler", daemon=True)
        self._tables: list[tuple[Sampler | Tally, Timetable]] = []
        self._cpu_ns = 0
        self._began_s = self._ended_s = 0.0

    def __enter__(self) -> Recorder:
        self._began_s = time.monotonic()
        self.take()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._words.put("stop")
        self._thread.join()
        self.take()
        self._ended_s = time.monotonic()

    def window_begins(self) -> None:
        """Have the snapshots read for the first time; returns at once."""
        self._words.put("begin")

    def window_ends(self) -> None:
        """Have the snapshots read once more; returns at once."""
        self._words.put("end")

    # -- the thread -----------------------------------------------------------------------------

    def _loop(self) -> None:
        began_ns, begin_s = time.thread_time_ns(), time.monotonic()
        for one in self._readable:
            if isinstance(one, Sampler):
                table = Timetable(begin_s, one.interval_s, at_start)
                table.done(begin_s)  # it was taken when the recorder was entered
                self._tables.append((one, table))
            elif isinstance(one, Tally):
                self._tables.append((one, Timetable(begin_s, one.interval_s, self._place)))
        while (word := self._next_word()) != "stop":
            if word is None:
                self._take_due()
            else:
                self._take_snapshots(word)
        self._cpu_ns += time.thread_time_ns() - began_ns

    def _next_word(self) -> _Word | None:
        """What is said until something is due; None: something is."""
        due = min((table.due_s for _, table in self._tables), default=None)
        try:
            wait_s = None if due is None else max(0.0, due - time.monotonic())
            return self._words.get(timeout=wait_s)
        except queue.Empty:
            return None

    def _take_due(self) -> None:
        for one, table in self._tables:
            if table.due_s <= time.monotonic():
                self._take(one)
                table.done(time.monotonic())
                self._accounts[one.name].lost = table.lost
        self._tables = [
            (one, table) for one, table in self._tables if self._accounts[one.name].failure is None
        ]

    def _take_snapshots(self, at: _End) -> None:
        for one in self._readable:
            if isinstance(one, Snapshot):
                self._take(one, at)

    # -- reading --------------------------------------------------------------------------------

    def take(self) -> None:
        """Take every series once. A sampler that fails is named and not asked again."""
        began_ns = time.thread_time_ns()
        for one in self._readable:
            if isinstance(one, Sampler):
                self._take(one)
        self._cpu_ns += time.thread_time_ns() - began_ns

    def _take(self, one: Readable, at: _End = "begin") -> None:
        account = self._accounts[one.name]
        if account.failure is not None:
            return
        began_ns = time.thread_time_ns()
        try:
            self._keep(one, at)
        except Exception as error:
            account.failure = str(error).strip() or type(error).__name__
        else:
            account.takes += 1
        account.cpu_ns += time.thread_time_ns() - began_ns

    def _keep(self, one: Readable, at: _End) -> None:
        if isinstance(one, Sampler):
            row = one.take()
            self._series[one.name].add(self._unix_ns(), row)
        elif isinstance(one, Tally):
            keys = one.take()
            self._tallies[one.name].add(self._unix_ns(), keys)
        else:
            rows = one.take()
            self._snapshots.append(snapshot_rows(one, at, self._unix_ns(), rows))

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
        return TelemetryReport(
            self._telemetry,
            self._ended_s - self._began_s,
            self._cpu_ns / 1e9,
            tuple(_cost(one, self._accounts[one.name]) for one in self._readable),
            self._missing,
        )


def _cost(one: Readable, account: _Account) -> SamplerCost:
    kind: Literal["series", "tally", "snapshot"] = "series"
    if not isinstance(one, Sampler):
        kind = "tally" if isinstance(one, Tally) else "snapshot"
    return SamplerCost(one.name, kind, account.takes, account.lost, account.cpu_ns / 1e9,
                       one.budget_us, account.failure)  # fmt: skip


def _require_distinct(readable: Sequence[Readable]) -> None:
    names = [one.name for one in readable]
    columns = [c.name for one in readable if isinstance(one, Sampler) for c in one.columns]
    for named in (names, columns):
        twice = sorted(name for name, times in Counter(named).items() if times > 1)
        assert not twice, f"samplers share a name: {', '.join(twice)}"


# Of a CPU that idles the kernel's times may go back by a tick (proc_stat(5)); nobody resets them.
_MAY_FALL = "cpu."


def delta(series: Series, window_ns: tuple[int, int]) -> float | None:
    """Growth of a counter over a window, its ends interpolated between two samples.

    Returns:
        None where the samples do not cover the window, or the counter fell within it.
    """
    if not _covers(series, window_ns) or fell_within(series, window_ns):
        return None
    ends = np.array(window_ns, dtype=np.float64)
    at = np.interp(ends, series.unix_ns, series.values)
    return float(at[1] - at[0])


def fell_within(series: Series, window_ns: tuple[int, int]) -> bool:
    """Whether a counter began anew between the samples that a window lies between."""
    if series.name.startswith(_MAY_FALL) or not _covers(series, window_ns):
        return False
    start, end = window_ns
    first = int(np.searchsorted(series.unix_ns, start, side="right")) - 1
    last = int(np.searchsorted(series.unix_ns, end, side="left"))
    return fell(series.values[first : last + 1])


def _covers(series: Series, window_ns: tuple[int, int]) -> bool:
    times = series.unix_ns
    return times.size >= 2 and bool(times[0] <= window_ns[0] and times[-1] >= window_ns[1])
