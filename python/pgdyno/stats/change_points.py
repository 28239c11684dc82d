"""Where a series of runs changes its level: Pettitt's test, then the same on both sides.

The statistic counts, for every place, how often what comes before is larger than what comes after;
its largest size is held against that of the same values in any order. It needs no shape of noise,
only that runs of one level could have come in any order: a slow drift is found as a change. The
chance is simulated with a fixed seed, so that the same series gives the same answer.

A series without a change gets one in at most 5% of cases, which a simulation asserts
(tests/unit/stats/test_stats_change_points.py). Series below `RUNS_MIN` cannot reach that level.

Source: A. N. Pettitt, "A non-parametric approach to the change-point problem", Applied Statistics
28(2), 1979. Both sides in turn: L. Yu. Vostrikova, 1981 (binary segmentation).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

import numpy as np
import numpy.typing as npt

from pgdyno.stats.interval import FloatArray

RUNS_MIN = 8
ALPHA = 0.05
_DRAWS = 4999
_SEED = 19_790_201


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """A place from which on a series has another level."""

    place: int  # of the first value of the new level, from 0
    ratio: float  # of the new level to the old one, by medians
    p: float  # of such a place where nothing changes


def change_points(logs: Sequence[float]) -> tuple[ChangePoint, ...]:
    """The places where the level of a series changes, in its order.

    Args:
        logs: Logarithms of what runs gave, in the order of time.
    """
    places = sorted(_places(np.array(logs, dtype=np.float64), 0))
    found = []
    for number, (place, p) in enumerate(places):
        begin = places[number - 1][0] if number else 0
        end = places[number + 1][0] if number + 1 < len(places) else len(logs)
        before, after = np.median(logs[begin:place]), np.median(logs[place:end])
        found.append(ChangePoint(place, exp(float(after - before)), p))
    return tuple(found)


def _places(logs: FloatArray, offset: int) -> list[tuple[int, float]]:
    if logs.size < RUNS_MIN:
        return []
    signs = np.sign(logs[:, np.newaxis] - logs[np.newaxis, :])
    sizes = np.abs(_counts(signs))
    p = _chance(signs, float(sizes.max()))
    if p > ALPHA:
        return []
    # Ranks may leave several places alike: the one is taken whose sides are most of a piece.
    places = np.flatnonzero(sizes == sizes.max()) + 1
    cut = int(min(places, key=lambda place: _spread(logs[:place]) + _spread(logs[place:])))
    return [
        *_places(logs[:cut], offset),
        (offset + cut, p),
        *_places(logs[cut:], offset + cut),
    ]


def _counts(signs: npt.NDArray[np.float64]) -> FloatArray:
    """Pettitt's U after each value but the last: adding value k adds its signs to all others."""
    return np.asarray(np.cumsum(signs.sum(axis=1))[:-1], dtype=np.float64)


def _spread(logs: FloatArray) -> float:
    return float(((logs - logs.mean()) ** 2).sum())


def _chance(signs: npt.NDArray[np.float64], size: float) -> float:
    """How often values in any order reach this size."""
    rng = np.random.default_rng((_SEED, signs.shape[0]))
    each = signs.sum(axis=1)
    orders = rng.permuted(np.broadcast_to(each, (_DRAWS, each.size)), axis=1)
    reached = (np.abs(np.cumsum(orders, axis=1)[:, :-1]).max(axis=1) >= size).sum()
    return float((reached + 1) / (_DRAWS + 1))
