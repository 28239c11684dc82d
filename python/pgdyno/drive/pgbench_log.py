"""pgbench's log of every transaction (`--log`), cut into a window, counted and timed.

A line is `client number time script seconds microseconds [lag] [retries]`: the time in µs from when
the transaction was due, or of a closed loop from its begin; the instant of its end; the lag from
when it was due to its begin. Where a transaction failed, a word stands instead of the time.

When its time is over, pgbench finishes the transactions that it has begun, and begins no more: with
a rate, what was due and waited for a client is never told. Each thread draws its own due times in
order, so what it does not tell lies behind the last one that it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from pgdyno import core
from pgdyno.drive.histogram import Histogram
from pgdyno.model.errors import DriveError
from pgdyno.model.response_times import times_series
from pgdyno.model.run import Counts, Failures, KindResult, Series
from pgdyno.model.wording import plural

_Ints = npt.NDArray[np.int64]
_CHUNK_BYTES = 16 << 20
_SECOND_NS = 1_000_000_000
_US = 1000  # ns
_ROWS_MAX = 7_200  # of times over time; of longer runs seconds are joined, as the driver does
_DAYS_S = 30 * 86_400  # longer than any run: what lies beyond was no time
_SERIALIZATION, _DEADLOCK, _FAILED, _SKIPPED = -1, -2, -3, -4  # in place of the time
_WORDS = {
    b"serialization": _SERIALIZATION,
    b"deadlock": _DEADLOCK,
    b"failed": _FAILED,
    b"skipped": _SKIPPED,
}
_SQLSTATES = {_SERIALIZATION: "40001", _DEADLOCK: "40P01", _FAILED: "failed"}


@dataclass(frozen=True, slots=True)
class Form:
    """What a line has beyond the first six columns."""

    lag: bool  # --rate
    retries: bool  # --max-tries other than 1

    @property
    def columns(self) -> int:
        """How many there are."""
        return 6 + self.lag + self.retries


@dataclass(slots=True)
class _Thread:
    """What the file of one of pgbench's threads tells of the window's end."""

    clients: set[int] = field(default_factory=set)
    busy: set[int] = field(default_factory=set)  # of these, performing as the window ended
    due_ns: int = 0  # of the last transaction


@dataclass(slots=True)
class _Kind:
    response: Histogram = field(default_factory=Histogram)
    service: Histogram = field(default_factory=Histogram)
    queue: Histogram = field(default_factory=Histogram)
    window: dict[str, int] = field(default_factory=dict)
    run: dict[str, int] = field(default_factory=dict)
    seconds: _Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))


@dataclass(slots=True)
class _Times:
    """Transactions by how long they took, of all kinds, by when they ended."""

    edges_ns: _Ints  # (columns + 1,)
    counts: _Ints  # (rows, columns)
    step_s: int = 1  # seconds that each row holds

    def add(self, seconds: _Ints, response_ns: _Ints) -> None:
        """Count transactions that ended in these seconds, `(transactions,)` both."""
        columns = self.edges_ns.size - 1
        while int(seconds.max(initial=0)) // self.step_s >= _ROWS_MAX:
            even = np.pad(self.counts, ((0, len(self.counts) % 2), (0, 0)))
            self.counts, self.step_s = even[::2] + even[1::2], 2 * self.step_s
        rows = seconds // self.step_s
        found = np.searchsorted(self.edges_ns, response_ns, side="right") - 1
        cells = rows * columns + np.minimum(found, columns - 1)
        size = max(len(self.counts), int(rows.max(initial=-1)) + 1)
        more = np.bincount(cells, minlength=size * columns).reshape(size, columns)
        self.counts = more + np.pad(self.counts, ((0, size - len(self.counts)), (0, 0)))


class Log:
    """What the log says of a window, and of the run around it."""

    def __init__(
        self, kinds: Sequence[str], form: Form, begin_ns: int, window_ns: tuple[int, int]
    ) -> None:
        """Count nothing yet.

        Args:
            kinds: What the scripts are called, in their order.
            form: Of the lines.
            begin_ns: Begin of the run, since the epoch.
            window_ns: Start and end of the window, likewise.
        """
        self._kinds = {name: _Kind() for name in kinds}
        self._form = form
        self._begin_ns = begin_ns
        self._window_ns = window_ns
        self._failures: dict[int, int] = {}
        self._threads: dict[str, _Thread] = {}
        edges_ns = np.array(core.time_edges_ns(), dtype=np.int64)
        self._times = _Times(edges_ns, np.zeros((0, edges_ns.size - 1), dtype=np.int64))
        self.lines = 0
        self.drained_s = 0.0  # from the window's end to the last end of what it had begun

    def read(self, name: str, file: BinaryIO) -> None:
        """Count the lines of an open file.

        Raises:
            DriveError: It has another form.
        """
        for chunk in _chunks(name, file):
            rows = self._rows(chunk, name)
            self.lines += len(rows)
            self._note_thread(name, rows)
            for number, kind in enumerate(self._kinds.values()):
                self._count(kind, rows[rows[:, 3] == number])

    def _rows(self, chunk: bytes, name: str) -> _Ints:
        for word, number in _WORDS.items():
            chunk = chunk.replace(word, b"%d" % number)
        wanted = chunk.count(b"\n") * self._form.columns
        try:
            values = np.fromstring(chunk, dtype=np.int64, sep=" ")
        except ValueError as error:
            raise DriveError(f"pgbench's log {name} is not understood: {error}") from error
        if values.size != wanted:
            raise DriveError(
                f"pgbench's log {name} has {plural(values.size, 'value')} in a part, not {wanted}"
            )
        rows = values.reshape(-1, self._form.columns)
        self._require_plausible(rows, name)
        return rows

    def _require_plausible(self, rows: _Ints, name: str) -> None:
        """Nothing that was garbled by a second writer or a full disk is counted.

        Raises:
            DriveError: A line names a script or a time that cannot be.
        """
        first, last = (at // _SECOND_NS for at in (self._begin_ns, self._window_ns[1]))
        bounds = {
            2: (_SKIPPED, _DAYS_S * 1_000_000), 3: (0, len(self._kinds) - 1),
            4: (first - _DAYS_S, last + _DAYS_S), 5: (0, 999_999),
        }  # fmt: skip
        if self._form.lag:
            bounds[6] = (0, _DAYS_S * 1_000_000)
        for column, (low, high) in bounds.items():
            wrong = (rows[:, column] < low) | (rows[:, column] > high)
            if wrong.any():
                found = int(rows[wrong, column][0])
                raise DriveError(
                    f"pgbench's log {name} has {found} in column {column + 1}, possible are"
                    f" {low} to {high}"
                )

    def _note_thread(self, name: str, rows: _Ints) -> None:
        if not self._form.lag:
            return
        _, until = self._window_ns
        thread = self._threads.setdefault(name, _Thread())
        rows = rows[rows[:, 2] >= 0]
        ended_ns = _ended_ns(rows)
        due_ns = ended_ns - rows[:, 2] * _US
        busy = (due_ns + rows[:, 6] * _US <= until) & (until < ended_ns)
        thread.clients.update(np.unique(rows[:, 0]).tolist())
        thread.busy.update(rows[busy, 0].tolist())
        thread.due_ns = max(thread.due_ns, int(due_ns.max(initial=0)))

    def unlogged(self, per_s: float) -> int:
        """About how many requests were due in the window that the log does not hold.

        Args:
            per_s: The rate of all threads; each has its share, as a Poisson process.
        """
        came, until = self._window_ns
        spans_ns = [
            until - max(thread.due_ns, came)
            for thread in self._threads.values()
            # A client that was free at the end had nothing due that waited.
            if thread.busy == thread.clients and thread.due_ns < until
        ]
        return round(per_s * sum(spans_ns) / _SECOND_NS / max(1, len(self._threads)))

    def _count(self, kind: _Kind, rows: _Ints) -> None:
        ended_ns = _ended_ns(rows)
        came, until = self._window_ns
        inside = (ended_ns >= came) & (ended_ns < until)
        good = rows[:, 2] >= 0
        response_ns = rows[:, 2] * _US
        queue_ns = rows[:, 6] * _US if self._form.lag else np.zeros_like(response_ns)
        over = good & (ended_ns >= until) & (ended_ns - response_ns < until)
        retries = rows[:, -1] if self._form.retries else np.zeros_like(response_ns)
        _add(kind.window, rows[inside, 2], retries[inside], drained=int(over.sum()))
        self.drained_s = max(self.drained_s, int((ended_ns[over] - until).max(initial=0)) / 1e9)
        _add(kind.run, rows[:, 2], retries)
        for code in _SQLSTATES:
            self._failures[code] = self._failures.get(code, 0) + int((rows[:, 2] == code).sum())
        measured = (good & inside) | over
        kind.response.add(response_ns[measured])
        kind.service.add((response_ns - queue_ns)[measured])
        kind.queue.add(queue_ns[measured])
        seconds = np.maximum(ended_ns[good] - self._begin_ns, 0) // _SECOND_NS
        self._times.add(seconds, response_ns[good])
        size = max(kind.seconds.size, int(seconds.max(initial=-1)) + 1)
        kind.seconds = np.bincount(seconds, minlength=size) + np.pad(
            kind.seconds, (0, size - kind.seconds.size)
        )

    def kinds(self, unlogged: int = 0) -> tuple[KindResult, ...]:
        """The kinds of transactions, in the order of the scripts.

        Args:
            unlogged: Requests of the window that the log does not hold. They would have taken
                longer than any that it holds for as long: all that is shown is a lower bound then.
        """
        bound = {"exact_below": 0} if unlogged else {}
        return tuple(
            KindResult(
                kind=name,
                window=Counts(**kind.window),
                run=Counts(**kind.run),
                response=kind.response.encoded(),
                service=kind.service.encoded(),
                response_ns=kind.response.summary_ns() | bound,
                service_ns=kind.service.summary_ns(),
                queue=kind.queue.encoded(),
                queue_ns=kind.queue.summary_ns() | bound,
            )
            for name, kind in self._kinds.items()
        )

    def series(self) -> tuple[Series, ...]:
        """What was committed in each second from the start of the run, by kind and by time."""
        size = max(kind.seconds.size for kind in self._kinds.values())
        at = self._begin_ns + np.arange(size, dtype=np.int64) * _SECOND_NS
        committed = (
            Series(
                f"driver.committed.{name}", "1/s", "rate", at,
                np.pad(kind.seconds, (0, size - kind.seconds.size)).astype(np.float64),
            )
            for name, kind in self._kinds.items()
        )  # fmt: skip
        kept = self._times
        edges_ns, columns = kept.edges_ns.tolist(), list(kept.counts.T)
        return (*committed, *times_series(self._begin_ns, kept.step_s, edges_ns, columns))

    def errors(self) -> tuple[Failures, ...]:
        """Transactions that failed for good, as the driver's results have them."""
        return tuple(
            Failures(_SQLSTATES[code], count, "pgbench reports no more")
            for code, count in self._failures.items()
            if count
        )


def _ended_ns(rows: _Ints) -> _Ints:
    ended: _Ints = (rows[:, 4] * 1_000_000 + rows[:, 5]) * _US
    return ended


def _add(counts: dict[str, int], times: _Ints, retries: _Ints, drained: int = 0) -> None:
    succeeded, skipped = int((times >= 0).sum()), int((times == _SKIPPED).sum())
    new = {
        "due": times.size + drained,
        "succeeded": succeeded,
        "failed": times.size - succeeded - skipped,
        "skipped": skipped,
        "unfinished": drained,
        "drained": drained,
        # The log does not tell 40001 from 40P01: both stand here.
        "retries_40001": int(retries.sum()),
    }
    for name, count in new.items():
        counts[name] = counts.get(name, 0) + count


def _chunks(name: str, file: BinaryIO) -> Iterator[bytes]:
    """The file in parts of whole lines."""
    rest = b""
    while data := file.read(_CHUNK_BYTES):
        lines, end, rest = (rest + data).rpartition(b"\n")
        if lines:
            yield lines + end
    if rest:
        raise DriveError(f"pgbench's log {name} ends within a line: {rest[:80]!r}")
