"""Response times over time for miniature run files, made up: as many as ended, longer in dips."""

from __future__ import annotations

from collections.abc import Sequence
from math import erf, sqrt

import numpy as np

from pgdyno import core
from pgdyno.model.response_times import times_series
from pgdyno.model.run import Series

ENDED = ("driver.committed.", "driver.rolled_back")


def times_of(series: Sequence[Series], p50_ns: float) -> list[Series]:
    """The series of times of a trial's requests.

    Args:
        series: Of what ended in each second.
        p50_ns: Their median in a second with as many as the best one has.
    """
    ended = np.sum([one.values for one in series if one.name.startswith(ENDED)], axis=0)
    rng = np.random.default_rng(int(ended.sum()))
    edges_ns = core.time_edges_ns()
    rows = [
        rng.multinomial(int(count), _shares(edges_ns, p50_ns * ended.max() / max(1.0, count)))
        for count in ended
    ]
    columns = list(np.array(rows, dtype=np.int64).T)
    return times_series(int(series[0].unix_ns[0]), 1, edges_ns, columns)


def _shares(edges_ns: Sequence[int], p50_ns: float) -> list[float]:
    """Of a lognormal distribution."""
    below = [
        (1 + erf(np.log(max(edge, 1) / p50_ns) / 0.7 / sqrt(2))) / 2 for edge in edges_ns[1:-1]
    ]
    return np.diff([0.0, *below, 1.0]).tolist()
