"""Intervals for the ratio of two stages from paired log ratios. Not here: tables, verdicts, text.

A pair is one round: d = log(tpm of a stage) - log(tpm of its base). What the round did to both
(a warmer machine, a fuller disk) cancels. The estimate is Hodges and Lehmann's, the median of all
pairwise means (Walsh averages). The interval is chosen by the number of pairs:

* below `MANY_PAIRS`, a parametric bootstrap: the distribution of |estimate| / (sd / sqrt(pairs))
  under normal noise does not depend on the noise's size, so it is simulated once per number of
  pairs and holds at its stated rate even for two or three. Resampling three values cannot do that:
  the percentile bootstrap covers fewer than three times in four (`tests/method`).
* from there on, the signed-rank test turned round: it needs only that the noise of a pair is
  symmetric, which it is when both stages have the same noise, whatever its shape.

Every function works on many experiments at once, so that the method can be simulated.

Sources:
    J. L. Hodges, E. L. Lehmann, "Estimates of location based on rank tests", Annals of
    Mathematical Statistics 34(2), 1963. M. Hollander, D. A. Wolfe, "Nonparametric Statistical
    Methods", chapter 3 (signed-rank interval).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from pgdyno.model.wording import plural

FloatArray = npt.NDArray[np.float64]

MANY_PAIRS = 10  # both methods are equally wide here under normal noise; below, ranks are coarser
PIVOT_DRAWS = 200_000  # true confidence then is within 0.1 points of the stated one
PIVOT_SEED = 20_200_405  # fixed: the same data give the same interval, today and in ten years
PIVOT_CELLS = 4_000_000  # values held at a time while drawing


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """Log ratios of many experiments with their intervals, each array of shape `(experiments,)`."""

    centre: FloatArray
    low: FloatArray
    high: FloatArray
    p: FloatArray  # two-sided, of "no difference"
    confidence: float  # the rate the interval really has; may exceed the one asked for
    method: str


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """Spread learned from all stages of a plan instead of the two compared.

    Narrower for few rounds, and only right when all stages are equally noisy.
    """

    sd: FloatArray  # of one paired log ratio, (experiments,); sqrt(2) times the residual sd
    stages: int  # rows of the stage x round table the residuals come from


def hodges_lehmann(pairs: FloatArray) -> FloatArray:
    """Median of the means of all pairs of values, each value with itself included.

    Args:
        pairs: Shape `(..., values)`, at least one value. Not changed.

    Returns:
        Shape `(...)`.
    """
    return np.asarray(np.median(_walsh(pairs), axis=-1), dtype=np.float64)


def estimate(pairs: FloatArray, confidence: float, pool: Pool | None = None) -> Estimate:
    """Estimate the log ratio of each experiment, with an interval and a p value.

    Args:
        pairs: Paired log ratios, shape `(experiments, pairs)`, at least two pairs, finite.
        confidence: Rate at which the interval shall hold the true log ratio, e.g. 0.95.
        pool: Where the spread comes from; `None` takes that of the pairs themselves. Not used
            from `MANY_PAIRS` on, where nothing is gained by it.
    """
    count = pairs.shape[1]
    # A confidence that the ranks of these pairs cannot reach leaves the parametric way.
    if count >= MANY_PAIRS and _rank_sum_tail(count)[0] <= (1 - confidence) / 2:
        return _signed_rank(pairs, confidence)
    stages = 2 if pool is None else pool.stages
    sd = pairs.std(axis=1, ddof=1) if pool is None else pool.sd
    centre = hodges_lehmann(pairs)
    error = sd / sqrt(count)
    pivot = null_pivot(count, stages)
    half = pivot[ceil((pivot.size + 1) * confidence) - 1] * error
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(error > 0, np.abs(centre) / error, np.where(centre == 0, 0, np.inf))
    beyond = pivot.size - np.searchsorted(pivot, ratio, side="left")
    source = "" if pool is None else f", spread pooled over {plural(stages, 'stage')}"
    return Estimate(
        centre=centre,
        low=centre - half,
        high=centre + half,
        p=(beyond + 1) / (pivot.size + 1),
        confidence=confidence,
        method=f"parametric bootstrap of the studentized Hodges-Lehmann estimate{source}",
    )


def worst_rank_p(pairs: FloatArray, lost: int) -> float:
    """Chance of such ranks under "no difference", trials without numbers being the worst of all.

    The signed-rank test, two-sided, in which each lost trial is a difference larger than all that
    were measured, and against the stage: its throughput is not known, but none is lower. It is
    exact for symmetric noise and any number of lost trials.

    Args:
        pairs: Paired log ratios in favour of the stage, shape `(pairs,)`, maybe none; finite.
        lost: Trials of the stage that failed where its base did not.

    Source:
        J. M. Lachin, "Worst-rank score analysis with informatively missing observations in
        clinical trials", Controlled Clinical Trials 20(5), 1999.
    """
    count = pairs.size + lost
    if count == 0:
        return 1.0
    order = np.argsort(np.abs(pairs), kind="stable")
    against = np.append(pairs[order] <= 0, np.ones(lost, dtype=bool))
    rank_sum = int(np.arange(1, count + 1)[against].sum())
    return float(min(1.0, 2 * _rank_sum_tail(count)[rank_sum]))


def pooled_sd(log_tpm: FloatArray) -> FloatArray:
    """Spread of one paired log ratio, from the residuals of stage and round effects.

    Args:
        log_tpm: Shape `(experiments, stages, rounds)`, complete, at least two of each.

    Returns:
        Shape `(experiments,)`. For two stages exactly the spread of their pairs.
    """
    _, stages, rounds = log_tpm.shape
    residual = log_tpm - log_tpm.mean(axis=2, keepdims=True)
    residual -= residual.mean(axis=1, keepdims=True)
    freedom = (stages - 1) * (rounds - 1)
    return np.asarray(np.sqrt(2 * (residual**2).sum(axis=(1, 2)) / freedom), dtype=np.float64)


@lru_cache(maxsize=64)
def null_pivot(pairs: int, stages: int = 2) -> FloatArray:
    """Draw |estimate| / (sd / sqrt(pairs)) under normal noise and no difference.

    Args:
        pairs: Number of rounds, at least two.
        stages: Rows of the table that the spread comes from; two means the pairs themselves.

    Returns:
        `PIVOT_DRAWS` values in ascending order; not to be changed, they are cached.
    """
    rng = np.random.default_rng((PIVOT_SEED, pairs, stages))
    cells = max(stages * pairs, pairs * (pairs + 1) // 2)
    drawn = []
    left = PIVOT_DRAWS
    while left:
        size = min(left, max(1, PIVOT_CELLS // cells))
        noise = rng.standard_normal((size, stages, pairs))
        centre = np.abs(hodges_lehmann(noise[:, 1] - noise[:, 0]))
        drawn.append(centre / (pooled_sd(noise) / sqrt(pairs)))
        left -= size
    pivot = np.sort(np.concatenate(drawn))
    pivot.flags.writeable = False
    return pivot


def _walsh(pairs: FloatArray) -> FloatArray:
    left, right = np.triu_indices(pairs.shape[-1])
    return np.asarray((pairs[..., left] + pairs[..., right]) / 2, dtype=np.float64)


def _signed_rank(pairs: FloatArray, confidence: float) -> Estimate:
    count = pairs.shape[1]
    walsh = np.sort(_walsh(pairs), axis=1)
    tail = _rank_sum_tail(count)
    # The largest number of Walsh averages that may be dropped from each end.
    drop = int(np.searchsorted(tail, (1 - confidence) / 2, side="right"))
    assert drop >= 1, f"{plural(count, 'pair')} cannot reach a confidence of {confidence}"
    extreme = np.minimum((walsh <= 0).sum(axis=1), (walsh >= 0).sum(axis=1))  # at most all
    return Estimate(
        centre=np.asarray(np.median(walsh, axis=1), dtype=np.float64),
        low=walsh[:, drop - 1],
        high=walsh[:, -drop],
        p=np.minimum(1.0, 2 * tail[extreme]),
        confidence=float(1 - 2 * tail[drop - 1]),
        method="Hodges-Lehmann interval of the Wilcoxon signed-rank test",
    )


@lru_cache(maxsize=64)
def _rank_sum_tail(count: int) -> FloatArray:
    """Chance that the signed-rank sum of `count` symmetric values is at most 0, 1, 2, ..."""
    chance = np.zeros(count * (count + 1) // 2 + 1)
    chance[0] = 1.0
    for rank in range(1, count + 1):
        shifted = np.zeros_like(chance)
        shifted[rank:] = chance[:-rank]
        chance = (chance + shifted) / 2
    tail = np.minimum(1.0, np.cumsum(chance))
    tail.flags.writeable = False
    return tail
