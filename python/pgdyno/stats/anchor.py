"""The throughput of a whole checkpoint cycle, from one cycle and three tenths of the next.

A trial begins with nothing dirty: its first cycle (curve A) pays for full page images, but writes
nothing of a cycle before it. The start of the second (curve B) pays for both. Their ratio at equal
phases is what the writes cost; A lessened by it while a checkpoint writes, and A as it is after
that, is a whole cycle in its steady state. Phases that B holds are taken from B: they also lack
what a cold begin costs A.

No shorter cycle may be scaled up instead: the pages that are touched for the first time grow less
than the cycle, so that full page images a transaction fall with its length (tests/method/cycles.py
has the model, and what each way errs by).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt

import numpy as np

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.interval import FloatArray

OVERLAP = 0.3  # of a cycle, that both curves hold
COLD_SHARE_MAX = 0.1  # of a cycle; what is colder for longer is no warm-up any more
CYCLE_S_MIN = 20.0  # below, seconds are too coarse for phases, and whole cycles are cheap
CURVE_BINS = 20
DRIFT_MAX = 0.05  # of B/A, from the first half of what both hold to the second
DRIFT_ERRORS = 3.0  # and beyond so many standard errors of it
_HINT = 'Measure the stage with protocol.checkpoints = "cycles".'


@dataclass(frozen=True, slots=True)
class Anchor:
    """One trial of 1.3 cycles; throughput is in transactions a second."""

    cycle_s: float  # from the start of the load to the first checkpoint's start
    whole: float  # mean of a whole cycle in its steady state
    short: float  # mean of the short window's phase, as other rounds measure it
    curve: tuple[float, ...]  # A: mean throughput in each twentieth of the first cycle
    ratio: float  # B / A where both are known: what the writes of a checkpoint leave
    drift: float  # of the logarithm of that ratio, over what both hold
    drift_error: float

    @property
    def drifts(self) -> bool:
        """Whether B/A is no single number, so that the rest of the cycle is not known."""
        return abs(self.drift) > max(DRIFT_MAX, DRIFT_ERRORS * self.drift_error)


def anchor(
    per_s: FloatArray,
    cycle_s: float,
    *,
    writing_share: float,
    short_s: tuple[float, float],
) -> Anchor:
    """Put both curves together.

    Args:
        per_s: Committed in each second from the start of the load, shape `(seconds,)`.
        cycle_s: When the first checkpoint began, since the start of the load.
        writing_share: Share of a cycle during which a checkpoint writes.
        short_s: Start and end of the short window, since the start of the load.

    Raises:
        PgdynoError: The cycle is too short, the trial does not reach far enough, or it stood still.
    """
    if cycle_s < CYCLE_S_MIN:
        fact = f"a cycle lasted {cycle_s:.1f} s, an anchor needs {CYCLE_S_MIN:g} s or more"
        raise PgdynoError(fact, hint=_HINT)
    if not 0 < writing_share <= 1:
        raise PgdynoError(f"a checkpoint writes for {writing_share} of its cycle, 0 to 1 expected")
    overlap = OVERLAP * cycle_s
    if per_s.size + 1 < cycle_s + overlap:
        fact = (
            f"the load lasted {per_s.size} s, an anchor of cycles of {cycle_s:.0f} s needs"
            f" {cycle_s + overlap:.0f} s"
        )
        raise PgdynoError(fact, hint=_HINT)
    total = _Total(per_s)
    cold = min(short_s[0], COLD_SHARE_MAX * cycle_s)
    first, second = total.of(cold, overlap), total.of(cycle_s + cold, cycle_s + overlap)
    if min(first, second) <= 0:
        raise PgdynoError("nothing was completed at the start of a cycle")
    ratio = second / first
    writing = max(writing_share * cycle_s, overlap)
    whole = (
        total.of(cycle_s, cycle_s + overlap)
        + ratio * total.of(overlap, writing)
        + total.of(writing, cycle_s)
    )
    drift, error = _drift(per_s, cycle_s, cold, overlap)
    edges = np.linspace(0, cycle_s, CURVE_BINS + 1)
    return Anchor(
        cycle_s=cycle_s,
        whole=whole / cycle_s,
        short=total.of(*short_s) / (short_s[1] - short_s[0]),
        curve=tuple(total.of(low, high) / (high - low) for low, high in pairwise(edges)),
        ratio=ratio,
        drift=drift,
        drift_error=error,
    )


class _Total:
    """What was completed between two instants; within a second evenly."""

    def __init__(self, per_s: FloatArray) -> None:
        self._sums = np.concatenate([[0.0], np.cumsum(per_s)])

    def of(self, begin_s: float, end_s: float) -> float:
        at = np.interp([begin_s, end_s], np.arange(self._sums.size), self._sums)
        return float(at[1] - at[0])


def _drift(per_s: FloatArray, cycle_s: float, cold: float, overlap: float) -> tuple[float, float]:
    """Change of log(B/A) from the first half of the common phases to the second, and its error."""
    length = int(overlap - cold) // 2
    shift = round(cycle_s)
    halves = []
    for half in range(2):
        begin = round(cold) + half * length
        one = per_s[begin : begin + length]
        other = per_s[shift + begin : shift + begin + length]
        if length < 2 or other.size < length or min(one.sum(), other.sum()) <= 0:
            return 0.0, float("inf")
        spread = sum((part.std(ddof=1) / part.mean()) ** 2 / length for part in (one, other))
        halves.append((log(other.sum() / one.sum()), float(spread)))
    return halves[1][0] - halves[0][0], sqrt(halves[0][1] + halves[1][1])
