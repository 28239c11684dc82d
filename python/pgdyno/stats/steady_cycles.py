"""Whether throughput holds from checkpoint cycle to checkpoint cycle, over all trials of a load.

A window of one or two cycles is short, and its seconds go up and down with the checkpoint: a line
through them tells nothing. Whole cycles are alike, and each trial holds some: those of its window,
and the last one of its warm-up. A line is laid through them, with a height of each trial's own and
a slope of each stage's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt

import numpy as np
from scipy import special

from pgdyno.model.wording import plural
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.steady import TOLERANCE, SteadyState

FREEDOM_MIN = 2
"""Degrees of freedom below which nothing is said: one residual alone has no spread."""


@dataclass(frozen=True, slots=True)
class CycleTrend:
    """What cycles of one stage say; changes are shares of its throughput, over `cycles` of them."""

    state: SteadyState
    fact: str
    change: float  # from the first cycle that counts to the last one
    low: float
    high: float
    cycles: int  # of the longest trial
    trials: int


def check_cycles(
    rates: Mapping[str, Sequence[FloatArray]],
    *,
    tolerance: float = TOLERANCE,
    confidence: float = 0.95,
) -> dict[str, CycleTrend]:
    """Tell of each stage whether its cycles were steady, drifting, or cannot be told.

    The spread is that of all cycles of all stages around their lines: stages of one load, on one
    machine, in the same rounds. Steady: the interval of the change lies within the tolerance.
    Drifting: it holds no zero, and does not lie within.

    Args:
        rates: By stage, and of each of its trials, the throughput in each whole cycle after the
            first one of the load, shape `(cycles,)`, above 0. A trial with one tells nothing.
        tolerance: Change that is still called steady, as a share.
        confidence: Of the interval of the change.

    Source:
        Least squares with a level for each trial (analysis of covariance): N. R. Draper, H. Smith,
        "Applied Regression Analysis". Error rates: tests/method.
    """
    known = {
        stage: [np.log(one) for one in trials if one.size > 1 and np.all(one > 0)]
        for stage, trials in rates.items()
    }
    slopes = {stage: _slope(trials) for stage, trials in known.items() if trials}
    squares = sum(
        float(np.sum((_centred(one) - slopes[stage] * _where(one)) ** 2))
        for stage, trials in known.items()
        for one in trials
    )
    freedom = sum(one.size - 1 for trials in known.values() for one in trials) - len(slopes)
    found = {}
    for stage, trials in known.items():
        longest = max((one.size for one in trials), default=0)
        if stage not in slopes or freedom < FREEDOM_MIN:
            found[stage] = _untold(longest, len(trials))
            continue
        spread = sqrt(squares / freedom / _information(trials)) * (longest - 1)
        half = float(special.stdtrit(freedom, (1 + confidence) / 2)) * spread
        middle = slopes[stage] * (longest - 1)
        ends = (float(np.expm1(middle - half)), float(np.expm1(middle + half)))
        found[stage] = _judged(float(np.expm1(middle)), ends, longest, len(trials), tolerance)
    return found


def _where(one: FloatArray) -> FloatArray:
    return np.arange(one.size, dtype=np.float64) - (one.size - 1) / 2


def _centred(one: FloatArray) -> FloatArray:
    return np.asarray(one - one.mean(), dtype=np.float64)


def _information(trials: Sequence[FloatArray]) -> float:
    return sum(float(np.sum(_where(one) ** 2)) for one in trials)


def _slope(trials: Sequence[FloatArray]) -> float:
    """Change of the logarithm from one cycle to the next."""
    return float(sum(np.sum(_where(one) * one) for one in trials)) / _information(trials)


def _judged(
    change: float, ends: tuple[float, float], cycles: int, trials: int, tolerance: float
) -> CycleTrend:
    low, high = ends
    seen = f"{low:+.1%} to {high:+.1%}; {plural(trials, 'trial')}"
    drift = f"{change:+.1%} over {plural(cycles, 'cycle')} ({seen})"
    if -tolerance <= low and high <= tolerance:
        state, fact = (
            SteadyState.STEADY,
            f"is steady within {tolerance:.0%} from cycle to cycle: ",
        )
    elif low > 0 or high < 0:
        state, fact = SteadyState.DRIFTING, "drifts from cycle to cycle: "
    else:
        state, fact = (
            SteadyState.UNKNOWN,
            "differs too much from cycle to cycle to tell, or over too few: ",
        )
    return CycleTrend(state, f"the throughput {fact}{drift}", change, low, high, cycles, trials)


def _untold(cycles: int, trials: int) -> CycleTrend:
    fact = (
        f"the trials have too few whole cycles to tell: {plural(trials, 'trial')} with {cycles}"
        " after the first one;"
        f" each trial needs 2, and all of them together {FREEDOM_MIN} more than their lines take"
    )
    return CycleTrend(SteadyState.UNKNOWN, fact, 0.0, -inf, inf, cycles, trials)
