"""What trials stored beside their results, each read of the run file once, however many ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from pgdyno.model.run import Series, SnapshotRows, TallySeries
from pgdyno.store import RunFile


class Stored:
    """Series, tallies and snapshots of a run file's trials, by their numbers.

    Its calls raise `StoreError` where the file cannot be read.
    """

    def __init__(self, run: RunFile) -> None:
        self.run = run
        self.series: Callable[[int], dict[str, Series]] = cache(run.series)
        self.tallies: Callable[[int], dict[str, TallySeries]] = cache(run.tallies)
        self.snapshots: Callable[[int], Sequence[SnapshotRows]] = cache(run.snapshots)
