"""Takes all samplers once a second in a thread of its own, and gives columns back.

The times are those of the sample, not those intended: a delayed sample stays honest.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import numpy as np

from pgdyno.model.run import Series
from pgdyno.sample.sampler import Column, Row, Sampler

INTERVAL_S = 1.0


class Recorder:
    """Records samplers from `__enter__` to `__exit__`, first and last sample included."""

    def __init__(
        self, samplers: Sequence[Sampler], unix_ns: Callable[[], int] = time.time_ns
    ) -> None:
        self._samplers = samplers
        self._unix_ns = unix_ns
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="pgdyno sampler", daemon=True)
        self._rows: dict[str, list[tuple[int, Row]]] = {s.name: [] for s in samplers}
        self.failures: dict[str, str] = {}  # sampler -> why it stopped

    def __enter__(self) -> Recorder:
        self.take()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self.take()

    def _loop(self) -> None:
        due = time.monotonic() + INTERVAL_S
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self.take()
            due += INTERVAL_S

    def take(self) -> None:
        """Take every sampler once. One that fails is named in `failures` and not asked again."""
        for sampler in self._samplers:
            if sampler.name in self.failures:
                continue
            try:
                row = sampler.take()
            except Exception as error:
                self.failures[sampler.name] = str(error).strip() or type(error).__name__
                continue
            self._rows[sampler.name].append((self._unix_ns(), row))

    def series(self) -> list[Series]:
        """Everything recorded, a column each."""
        return [
            _series(column, self._rows[sampler.name])
            for sampler in self._samplers
            for column in sampler.columns
            if self._rows[sampler.name]
        ]


def _series(column: Column, rows: Sequence[tuple[int, Row]]) -> Series:
    times = np.array([at for at, _ in rows], dtype=np.int64)
    values = np.array([row[column.name] for _, row in rows], dtype=np.float64)
    return Series(column.name, column.unit, column.kind, times, values)


def delta(series: Series, window_ns: tuple[int, int]) -> float | None:
    """Growth of a counter over a window, its ends interpolated between two samples.

    Returns:
        None where the samples do not cover the window.
    """
    if series.unix_ns.size < 2:
        return None
    start, end = window_ns
    if series.unix_ns[0] > start or series.unix_ns[-1] < end:
        return None
    at = np.interp(np.array([start, end], dtype=np.float64), series.unix_ns, series.values)
    return float(at[1] - at[0])
