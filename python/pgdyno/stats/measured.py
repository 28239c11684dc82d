"""One comparison by itself: its ratio, its interval, and failed trials as evidence.

Not here: verdicts (`verdict`), families (`compare`), looks while it is measured (`looks`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf, log1p, nan
from typing import Literal

import numpy as np

from pgdyno.model.wording import listed, plural
from pgdyno.stats.interval import (
    Estimate,
    FloatArray,
    Pool,
    estimate,
    hodges_lehmann,
    pooled_sd,
    worst_rank_p,
)
from pgdyno.stats.table import Table, log_tpm

SD_MEASURABLE_MIN = 1e-9  # pairs that agree better than this were copied, not measured

Spread = Literal["own", "pooled"]
Fit = Callable[[FloatArray, float, Pool | None], Estimate]
"""As `interval.estimate`."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A comparison by itself."""

    stage: str
    base: str
    ratio: float
    low: float
    high: float
    confidence: float
    n: int
    spread: float
    method: str
    p: float
    no_verdict: str | None  # why none may be given
    warnings: tuple[str, ...]
    failed: Failed | None = None  # None: no trial of either did
    not_judged: str | None = None  # why its windows say nothing of the stages


@dataclass(frozen=True, slots=True)
class Failed:
    """Failed trials of a comparison, as evidence."""

    sentence: str
    p_better: float  # of the ranks, those that the stage lost counted against it
    p_worse: float  # the same of the base
    p_equivalent: float  # the larger of both, each from its end of the margin

    def p_for(self, ratio: float) -> float:
        """Chance of such ranks, for whom the ratio favours."""
        return self.p_better if ratio > 1 else self.p_worse


def measure(
    table: Table,
    stage: str,
    base: str,
    confidence: float,
    spread: Spread = "own",
    fit: Fit = estimate,
) -> Measured:
    """Measure the ratio of two stages by the rounds that both have.

    Args:
        table: Throughput.
        stage: One of its stages.
        base: What it is held against.
        confidence: Of the interval.
        spread: See `compare.compare_plan`.
        fit: What makes the interval of two pairs or more.
    """
    upper, lower = table.row(stage), table.row(base)
    used = (upper > 0) & (lower > 0)
    pairs = log_tpm(upper[used]) - log_tpm(lower[used])
    warnings, no_verdict = _gaps(table, stage, base)
    if pairs.size < 2:
        few = f"{plural(pairs.size, 'round has', 'rounds have')} both stages, an interval needs 2"
        ratio = exp(pairs[0]) if pairs.size else nan
        return Measured(
            stage=stage, base=base, ratio=ratio, low=0.0, high=inf, confidence=confidence,
            n=pairs.size, spread=nan, method="none", p=1.0, no_verdict=few,
            warnings=(*warnings, few),
        )  # fmt: skip
    sd = float(pairs.std(ddof=1))
    if sd < SD_MEASURABLE_MIN:
        copied = (
            f"all {plural(pairs.size, 'round')} have the same ratio, which measured data never show"
        )
        return Measured(
            stage=stage, base=base, ratio=float(np.exp(hodges_lehmann(pairs))), low=0.0, high=inf,
            confidence=confidence, n=pairs.size, spread=sd, method="none", p=1.0,
            no_verdict=copied, warnings=(*warnings, copied),
        )  # fmt: skip
    pool = None
    if spread == "pooled":
        pool = Pool(pooled_sd(log_tpm(table.tpm)[np.newaxis]), len(table.stages))
        sd = float(pool.sd[0])
    fitted = fit(pairs[np.newaxis], confidence, pool)
    return _from_fit(fitted, stage, base, pairs.size, sd, no_verdict, warnings)


def _from_fit(
    fit: Estimate,
    stage: str,
    base: str,
    n: int,
    sd: float,
    no_verdict: str | None,
    warnings: tuple[str, ...],
) -> Measured:
    if n == 2:
        warnings += ("2 rounds say little of how far they differ by chance: measure 3 or more",)
    ratio, low, high = (float(np.exp(side[0])) for side in (fit.centre, fit.low, fit.high))
    return Measured(
        stage=stage, base=base, ratio=ratio, low=low, high=high, confidence=fit.confidence, n=n,
        spread=sd, method=fit.method, p=float(fit.p[0]), no_verdict=no_verdict, warnings=warnings,
    )  # fmt: skip


def agrees_exactly(one: Measured) -> bool:
    """Whether all rounds have one ratio to the digit: of counts a further one may differ."""
    return one.n >= 2 and one.spread < SD_MEASURABLE_MIN


def with_failures(one: Measured, table: Table, margin: float) -> Measured:
    """The same with the failed trials of both as evidence against whose they are."""
    sentences = [text for name in (one.stage, one.base) if (text := table.failures(name))]
    if not sentences:
        return one
    upper, lower = table.row(one.stage), table.row(one.base)
    used = (upper > 0) & (lower > 0)
    pairs = log_tpm(upper[used]) - log_tpm(lower[used])
    lost, lost_by_base = table.lost(one.stage, one.base), table.lost(one.base, one.stage)

    def p_of(pairs: FloatArray, lost: int) -> float:
        return worst_rank_p(pairs, lost) if lost else 0.0  # nothing lost asks for nothing more

    failed = Failed(
        sentence="; ".join(sentences),
        p_better=p_of(pairs, lost),
        p_worse=p_of(-pairs, lost_by_base),
        p_equivalent=max(
            p_of(log1p(margin) + pairs, lost), p_of(log1p(margin) - pairs, lost_by_base)
        ),
    )
    p = max(one.p, failed.p_for(one.ratio))
    lived = f"{failed.sentence}; ratio and interval are those of the rounds in which both lived"
    return replace(
        one, p=p, failed=failed, warnings=(*one.warnings, lived),
        no_verdict=f"{one.no_verdict}; {failed.sentence}" if one.no_verdict else None,
    )  # fmt: skip


def _gaps(table: Table, stage: str, base: str) -> tuple[tuple[str, ...], str | None]:
    """Say which rounds cannot be used, and whether that forbids a verdict."""
    warnings, no_verdict = [], None
    reached = table.ended(stage) | table.ended(base)  # nothing is left out of what was never begun
    for name in (stage, base):
        row = table.row(name)
        if gone := [str(table.rounds[at]) for at in np.flatnonzero(np.isnan(row) & reached)]:
            rounds = f"round{'s' * (len(gone) > 1)} {listed(gone)}"
            warnings.append(f"{rounds} left out: no valid trial of {name}")
        for round_, value in zip(table.rounds, row, strict=True):
            if value == 0:
                # Leaving it out flatters the stage that stood still: no verdict then.
                no_verdict = f"{name} completed nothing in round {round_}"
                warnings.append(f"round {round_} left out: {no_verdict}, the ratio is undefined")
    return tuple(warnings), no_verdict
