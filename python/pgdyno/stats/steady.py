"""Where the warm-up of a run ends, and whether the measured window was steady.

Both look at one throughput series of equal steps. Stalls are counted and stay in: a server that
stands still for two seconds has a lower throughput, and that is the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import inf, nan

import numpy as np
from scipy import special

from pgdyno.model.errors import PgdynoError
from pgdyno.model.wording import plural
from pgdyno.stats.interval import FloatArray

CUT_BATCHES_MIN = 10
TREND_BATCHES = 10  # few and long: what is left of the autocorrelation between them is small
TREND_STEPS_MIN = 3 * TREND_BATCHES
LAG1_BIAS = 0.15  # the lag-1 correlation of ten residuals of a line comes out too low by this much
LAG1_MAX = 0.9
LAG1_STEPS_MAX = 0.99
EFFECTIVE_MIN = 15.0  # independent values; with fewer, a slow swing looks like a drift
TOLERANCE = 0.10  # change over the window; the mean is then within 5 % of either end
STALL_SHARE = 0.5  # of the median


class SteadyState(StrEnum):
    """What may be said of a window."""

    STEADY = "steady"
    DRIFTING = "drifting"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Cut:
    """Where the steady part begins, by the MSER rule."""

    start_s: float  # NaN when the series is too short
    settled: bool  # False: it had not settled in the first half, or the series is too short
    fact: str


@dataclass(frozen=True, slots=True)
class Steadiness:
    """Whether a window was steady, and how much it tells. Drift is a share of the mean."""

    state: SteadyState
    fact: str
    drift_per_min: float  # NaN when unknown for want of data
    drift_low: float
    drift_high: float
    confidence: float
    mean: float  # per step, stalls included
    median: float
    steps: int
    effective_n: float  # independent steps with the same information on the mean
    stall_s: float  # time below half of the median
    zero_s: float  # time in which nothing was completed; part of `stall_s`
    longest_stall_s: float


def warmup_cut(throughput: FloatArray, *, step_s: float = 1.0, batch: int = 5) -> Cut:
    """Find where the warm-up ends.

    The rule drops the steps whose removal makes the mean of the rest most certain. It looks for the
    cut in the first half only: a later one means that the run was too short to tell.

    Args:
        throughput: Completed per step, shape `(steps,)`, from the start of the run, without gaps.
        step_s: Length of a step.
        batch: Steps averaged before the search (5 gives MSER-5), to damp single bad steps.

    Raises:
        PgdynoError: A value is negative or not finite.

    Source:
        K. P. White, "An effective truncation heuristic for bias reduction in simulation output",
        Simulation 69(6), 1997. Checked in tests against ramps of known length.
    """
    values = _checked(throughput)
    count = values.size // batch
    if count < CUT_BATCHES_MIN:
        fact = (
            f"the series has {plural(values.size, 'step')}, too few to find the end of the warm-up:"
            f" {CUT_BATCHES_MIN * batch} are needed"
        )
        return Cut(nan, settled=False, fact=fact)
    means = values[: count * batch].reshape(count, batch).mean(axis=1)
    cuts = np.arange(count // 2 + 1)
    errors = np.array([means[cut:].var() / (count - cut) for cut in cuts])
    best = int(np.argmin(errors))
    start_s = best * batch * step_s
    if best == cuts[-1]:
        fact = f"the throughput had not settled after {start_s:g} s, half of the run"
        return Cut(start_s, settled=False, fact=fact)
    return Cut(start_s, settled=True, fact=f"the throughput settled after {start_s:g} s")


def check_window(
    throughput: FloatArray,
    *,
    step_s: float = 1.0,
    tolerance: float = TOLERANCE,
    confidence: float = 0.95,
) -> Steadiness:
    """Tell whether a window was steady, drifting, or cannot be told.

    A line is laid through the means of ten batches. Its interval takes their spread around the
    line, and widens with what correlation is left between neighbours. Steady: the interval of the
    change over the window lies within the tolerance. Drifting: it holds no zero, and does not lie
    within. Anything else is unknown: too short, or too noisy, to tell.

    Args:
        throughput: Completed per step in the window, shape `(steps,)`, without gaps.
        step_s: Length of a step.
        tolerance: Change over the window that is still called steady, as a share of the mean.
        confidence: Of the interval of the drift.

    Raises:
        PgdynoError: A value is negative or not finite.

    Source:
        B. Schmeiser, "Batch size effects in the analysis of simulation output", Operations
        Research 30(3), 1982: little is lost with eight to ten batches. Error rates: tests/method.
    """
    values = _checked(throughput)
    stalls = _stalls(values, step_s)
    if values.size < TREND_STEPS_MIN:
        fact = (
            f"the window has {plural(values.size, 'step')}, too few to tell:"
            f" {TREND_STEPS_MIN} are needed"
        )
        return _untold(values, stalls, confidence, fact)
    if stalls.median == 0:
        return _untold(values, stalls, confidence, "nothing was completed in most of the window")
    trend = fit_trend(values[np.newaxis], confidence)
    mean = float(values.mean())
    length = values.size
    change, half = float(trend.change[0]) / mean, float(trend.half[0]) / mean
    effective_n = float(trend.effective_n[0])
    per_min = 60 / (length * step_s)
    low, high = change - half, change + half
    state, fact = _judge(low, high, tolerance, effective_n, per_min)
    return Steadiness(
        state=state, fact=fact, drift_per_min=change * per_min, drift_low=low * per_min,
        drift_high=high * per_min, confidence=confidence, mean=mean, median=stalls.median,
        steps=length, effective_n=effective_n, stall_s=stalls.below_s, zero_s=stalls.zero_s,
        longest_stall_s=stalls.longest_s,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Trend:
    """Lines through many windows, each array of shape `(windows,)`, in units of the series."""

    change: FloatArray  # over the whole window
    half: FloatArray  # half width of its interval
    effective_n: FloatArray


def fit_trend(windows: FloatArray, confidence: float) -> Trend:
    """Fit a line to each window by its batch means.

    Args:
        windows: Shape `(windows, steps)`, at least `TREND_STEPS_MIN` steps.
        confidence: Of the interval of the change.
    """
    count, steps = windows.shape
    length = steps // TREND_BATCHES
    # What does not fill a batch is left out at the front, where the warm-up may still be felt.
    body = windows[:, steps - length * TREND_BATCHES :]
    means = body.reshape(count, TREND_BATCHES, length).mean(axis=2)
    where = np.arange(TREND_BATCHES) - (TREND_BATCHES - 1) / 2
    slope = means @ where / (where @ where)
    residual = means - means.mean(axis=1, keepdims=True) - slope[:, np.newaxis] * where
    squares = (residual**2).sum(axis=1)
    lagged = (residual[:, 1:] * residual[:, :-1]).sum(axis=1)
    lag1 = np.divide(lagged, squares, out=np.zeros(count), where=squares > 0)
    lag1 = np.clip(lag1 + LAG1_BIAS, 0, LAG1_MAX)
    inflated = squares / (TREND_BATCHES - 2) * (1 + lag1) / (1 - lag1)
    t = special.stdtrit(TREND_BATCHES - 2, (1 + confidence) / 2)
    half = t * np.sqrt(inflated / (where @ where)) * steps / length
    return Trend(slope * steps / length, half, _effective_n(body, slope / length, inflated))


def _effective_n(body: FloatArray, slope_per_step: FloatArray, inflated: FloatArray) -> FloatArray:
    """Steps that would tell as much of the mean were they independent; drift set aside.

    The smaller of two answers: from the spread of the batch means, and from the correlation of
    neighbouring steps, which a short window shows better.
    """
    steps = body.shape[1]
    where = np.arange(steps) - (steps - 1) / 2
    residual = body - body.mean(axis=1, keepdims=True) - slope_per_step[:, np.newaxis] * where
    squares = (residual**2).sum(axis=1)
    of_mean = inflated / TREND_BATCHES
    by_batches = np.full(body.shape[0], inf)
    np.divide(squares / (steps - 2), of_mean, out=by_batches, where=of_mean > 0)
    lagged = (residual[:, 1:] * residual[:, :-1]).sum(axis=1)
    lag1 = np.divide(lagged, squares, out=np.zeros(body.shape[0]), where=squares > 0)
    # Residuals of a line look less correlated than they are, by (2 + 4 lag1) / steps.
    lag1 = np.clip((lag1 + 2 / steps) / (1 - 4 / steps), 0, LAG1_STEPS_MAX) * (squares > 0)
    by_neighbours = steps * (1 - lag1) / (1 + lag1)
    both = np.minimum(by_batches, by_neighbours)
    return np.asarray(np.clip(both, 1.0, float(steps)), dtype=np.float64)


def _judge(
    low: float, high: float, tolerance: float, effective_n: float, per_min: float
) -> tuple[SteadyState, str]:
    drift = (
        f"its drift is {(low + high) / 2 * per_min:+.1%} a minute"
        f" ({low * per_min:+.1%} to {high * per_min:+.1%})"
    )
    if effective_n < EFFECTIVE_MIN:
        fact = f"the window is too short for how slowly the throughput varies: {drift}"
        return SteadyState.UNKNOWN, fact
    if -tolerance <= low and high <= tolerance:
        fact = f"the throughput is steady within {tolerance:.0%} over the window: {drift}"
        return SteadyState.STEADY, fact
    if low > 0 or high < 0:
        return SteadyState.DRIFTING, f"the throughput drifts: {drift}"
    return SteadyState.UNKNOWN, f"the window is too short or too noisy to tell: {drift}"


@dataclass(frozen=True, slots=True)
class _Stalls:
    median: float
    below_s: float
    zero_s: float
    longest_s: float


def _stalls(values: FloatArray, step_s: float) -> _Stalls:
    if values.size == 0:
        return _Stalls(nan, 0.0, 0.0, 0.0)
    median = float(np.median(values))
    # A zero step is a stall even where most steps are zero and half of the median is too.
    below = (values < STALL_SHARE * median) | (values == 0)
    runs = (len(list(run)) for stalled, run in groupby(below.tolist()) if stalled)
    return _Stalls(
        median=median,
        below_s=float(below.sum()) * step_s,
        zero_s=float((values == 0).sum()) * step_s,
        longest_s=max(runs, default=0) * step_s,
    )


def _untold(values: FloatArray, stalls: _Stalls, confidence: float, fact: str) -> Steadiness:
    return Steadiness(
        state=SteadyState.UNKNOWN, fact=fact, drift_per_min=nan, drift_low=-inf, drift_high=inf,
        confidence=confidence, mean=float(values.mean()) if values.size else nan,
        median=stalls.median, steps=values.size, effective_n=nan, stall_s=stalls.below_s,
        zero_s=stalls.zero_s, longest_stall_s=stalls.longest_s,
    )  # fmt: skip


def _checked(throughput: FloatArray) -> FloatArray:
    values = np.asarray(throughput, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if bad.size:
        raise PgdynoError(
            f"step {int(bad[0])} of the throughput series is {values[bad[0]]}, 0 or more expected"
        )
    return values
