"""What a recorder keeps of its samplers until the end, in bytes rather than in objects.

A day of hundreds of columns would fill the memory as Python's numbers; as columns it is some
megabytes.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Container, Iterable, Sequence
from math import isnan, nan
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from pgdyno.model.run import Series, SnapshotColumn, SnapshotRows, TallySeries
from pgdyno.model.wording import plural
from pgdyno.sample.sampler import Column, Label, Row, Sampler, Snapshot, SnapshotRow, Tally

NS = 1_000_000_000
Counts: TypeAlias = Counter[tuple[str, ...]]
BEGIN = (0, 0)
"""Before the first look of a tally."""


class KeptSeries:
    """The samples of one sampler, a column each."""

    def __init__(self, sampler: Sampler) -> None:
        self._columns = sampler.columns
        self._unix_ns = array("q")
        self._values = [array("d") for _ in sampler.columns]

    def add(self, unix_ns: int, row: Row) -> None:
        """A sample; columns that are not in it have none."""
        self._unix_ns.append(unix_ns)
        for column, values in zip(self._columns, self._values, strict=True):
            values.append(row.get(column.name, nan))

    def last(self, names: Container[str]) -> tuple[int, Row] | None:
        """Time and counters of these names at the last sample; None: there is none yet.

        Whoever looks on may ask it while another thread adds samples.
        """
        if not self._values or not (whole := len(self._values[-1])):  # the last that is added to
            return None
        row = {
            column.name: values[whole - 1]
            for column, values in zip(self._columns, self._values, strict=True)
            if column.kind == "counter" and column.name in names
        }
        return self._unix_ns[whole - 1], {name: one for name, one in row.items() if not isnan(one)}

    def series(self) -> list[Series]:
        """Columns that have samples."""
        times = np.array(self._unix_ns, dtype=np.int64)
        found = [
            _series(column, times, np.array(values, dtype=np.float64))
            for column, values in zip(self._columns, self._values, strict=True)
        ]
        return [one for one in found if one.values.size]


def _series(
    column: Column, times: npt.NDArray[np.int64], values: npt.NDArray[np.float64]
) -> Series:
    there = ~np.isnan(values)
    if not there.all():
        times, values = times[there], values[there]
    return Series(column.name, column.unit, column.kind, times, values)


class KeptTally:
    """How often each key of one tally was met, by whole seconds."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._second = 0
        self._ticks_now = 0
        self._counts_now: Counter[tuple[str, ...]] = Counter()
        self._numbers: dict[tuple[str, ...], int] = {}
        self._keys: list[tuple[str, ...]] = []  # by their numbers
        self._whole = (0, 0)  # looks and counts of seconds that are over
        self._seconds, self._key, self._counts = array("q"), array("q"), array("q")
        self._tick_seconds, self._ticks = array("q"), array("q")

    def add(self, unix_ns: int, keys: Iterable[tuple[str, ...]]) -> None:
        """What one look found.

        Raises:
            ValueError: A key does not have the tally's dimensions.
        """
        found = Counter(keys)
        width = len(self._tally.dimensions)
        if any(len(key) != width for key in found):
            raise ValueError(f"a key of {self._tally.name} has not {plural(width, 'dimension')}")
        if (second := unix_ns // NS) != self._second:
            self._close()
            self._second = second
        self._ticks_now += 1
        self._counts_now += found

    def _close(self) -> None:
        """The second that was under way is over."""
        if self._ticks_now:
            self._tick_seconds.append(self._second)
            self._ticks.append(self._ticks_now)
        for key, count in self._counts_now.items():
            self._seconds.append(self._second)
            self._key.append(self._number(key))
            self._counts.append(count)
        self._ticks_now, self._counts_now = 0, Counter()
        self._whole = (len(self._ticks), len(self._counts))

    def _number(self, key: tuple[str, ...]) -> int:
        if key not in self._numbers:
            self._numbers[key] = len(self._keys)
            self._keys.append(key)
        return self._numbers[key]

    @property
    def dimensions(self) -> tuple[str, ...]:
        """What a key is made of."""
        return self._tally.dimensions

    def since(self, before: tuple[int, int]) -> tuple[tuple[int, int], int, Counts]:
        """What was met in the seconds that have ended since.

        Whoever looks on may ask it while another thread adds looks.

        Args:
            before: What it returned the time before; at first `BEGIN`.

        Returns:
            What is to be given the next time, how often it was looked, and how often all these
            looks met each key.
        """
        now = self._whole
        counts: Counts = Counter()
        for number, count in zip(
            self._key[before[1] : now[1]], self._counts[before[1] : now[1]], strict=True
        ):
            counts[self._keys[number]] += count
        return now, sum(self._ticks[before[0] : now[0]]), counts

    def series(self) -> list[TallySeries]:
        """All of it; nothing where it was never looked."""
        self._close()
        if not self._ticks:
            return []
        columns = (self._seconds, self._key, self._counts, self._tick_seconds, self._ticks)
        return [
            TallySeries(
                self._tally.name,
                self._tally.dimensions,
                tuple(self._keys),
                *(np.array(column, dtype=np.int64) for column in columns),
            )
        ]


def snapshot_rows(
    snapshot: Snapshot,
    at: Literal["begin", "end"],
    unix_ns: int,
    rows: Sequence[SnapshotRow],
) -> SnapshotRows:
    """A snapshot as the run file keeps it.

    Raises:
        ValueError: A row lacks a column, or holds what is neither text nor number.
    """
    columns = tuple(_snapshot_column(column) for column in snapshot.columns)
    for row in rows:
        for column in columns:
            _require_cell(column.name, row)
    kept = tuple({column.name: row[column.name] for column in columns} for row in rows)
    return SnapshotRows(snapshot.name, at, unix_ns, columns, kept)


def _snapshot_column(column: Column | Label) -> SnapshotColumn:
    if isinstance(column, Label):
        return SnapshotColumn(column.name, "", "label")
    return SnapshotColumn(column.name, column.unit, column.kind)


def _require_cell(name: str, row: SnapshotRow) -> None:
    if name not in row:
        raise ValueError(f"a row has no column {name}")
    cell = row[name]
    if not (cell is None or isinstance(cell, (str, int, float))):  # a bool is an int
        raise ValueError(f"column {name} holds a {type(cell).__name__}, not text or a number")
    if isinstance(cell, float) and isnan(cell):
        raise ValueError(f"column {name} holds no number")
