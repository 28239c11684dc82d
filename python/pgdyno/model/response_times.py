"""Response times over time, as series: how many requests ended when, by how long they took.

A series holds those between two times, as `driver.response.4096_6144_ns` holds those of 4,096 ns up
to 6,144: half an octave, so a time is known to a third of itself. All kinds of transactions count
together; what failed, and what had no answer, has no time. Beyond two hours the samples of a series
are 2, 4, 8 … seconds apart, and each is the rate of all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from pgdyno.model.run import Series

SECOND_NS = 1_000_000_000
_NAME = re.compile(r"driver\.response\.(\d+)_(\d+)_ns", re.ASCII)
_Counts = npt.NDArray[np.int64]


def times_series(
    begin_unix_ns: int, step_s: int, edges_ns: Sequence[int], columns: Sequence[_Counts]
) -> list[Series]:
    """The series of what was counted; columns in which nothing was met have none.

    Args:
        begin_unix_ns: When the first row begins.
        step_s: Seconds of each row, a power of two: what is divided by it stays exact.
        edges_ns: Bounds of the columns, ascending, shape `(columns + 1,)`.
        columns: Requests that ended, each of shape `(rows,)`.
    """
    return [
        Series(
            f"driver.response.{low}_{high}_ns", "1/s", "rate",
            begin_unix_ns + np.arange(column.size, dtype=np.int64) * (step_s * SECOND_NS),
            column.astype(np.float64) / step_s,
        )
        for (low, high), column in zip(pairwise(edges_ns), columns, strict=True)
        if column.any()
    ]  # fmt: skip


def counted(
    series: Mapping[str, Series],
) -> tuple[_Counts, int, npt.NDArray[np.int64], _Counts] | None:
    """What was counted, of the series of a trial.

    Returns:
        When each row begins, ns since the Unix epoch, `(rows,)`; seconds that each holds; bounds of
        the columns, ns, `(columns + 1,)`; requests that ended, `(columns, rows)`. None: the driver
        did not keep them, or nothing ended.
    """
    found = sorted(
        (int(named[1]), int(named[2]), one)
        for name, one in series.items()
        if (named := _NAME.fullmatch(name)) and one.values.size
    )
    if not found:
        return None
    unix_ns = found[0][2].unix_ns
    step_s = round((unix_ns[1] - unix_ns[0]) / SECOND_NS) if unix_ns.size > 1 else 1
    edges = np.unique([edge for low, high, _ in found for edge in (low, high)])
    counts = np.zeros((edges.size - 1, unix_ns.size), dtype=np.int64)
    for low, _, one in found:
        counts[np.searchsorted(edges, low)] += np.rint(one.values * step_s).astype(np.int64)
    return unix_ns, step_s, edges, counts
