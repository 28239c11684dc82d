"""What may be said of a stage against its base, and for which reason."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from math import log1p, nan
from typing import Literal

import numpy as np

from pgdyno.model.wording import deciding_rounds, plural
from pgdyno.stats.measured import Measured
from pgdyno.stats.power import rounds_for

Relation = Literal["first", "before", "asked"]


class Verdict(StrEnum):
    """What may be said of a stage against its base; more throughput is better."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"  # no number of rounds would tell what the stages differ in


@dataclass(frozen=True, slots=True)
class Comparison:
    """A stage against its base."""

    stage: str
    base: str
    relation: Relation
    ratio: float  # stage / base; NaN without a pair
    low: float
    high: float  # (0, inf) with fewer than two pairs
    confidence: float  # the rate at which (low, high) holds the true ratio
    n: int  # pairs, i.e. rounds with a valid trial of both
    spread: float  # sd of one paired log ratio; NaN with fewer than two pairs
    method: str
    p: float  # two-sided, of "no difference"; 1 without an interval; NaN where looks judge
    p_adjusted: float  # by Holm, within the family
    verdict: Verdict
    reason: str  # of the verdict, one clause
    rounds_needed: int | None  # for a verdict, when undecided; None also: not within reach
    warnings: tuple[str, ...]
    failures: str | None = None  # e.g. "2 of 5 trials of tuned failed"; of the base, too
    look: int | None = None  # rounds at the look that says this; None: none did
    stopped: bool = False  # decided at that look, or given up: no further round is needed


def comparison(
    one: Measured, relation: Relation, verdict: Verdict, reason: str, margin: float
) -> Comparison:
    """What was measured of two stages, with what is said of it; a small difference is named so."""
    warnings = one.warnings
    if verdict in {Verdict.BETTER, Verdict.WORSE} and inside(one, margin):
        warnings += (f"the difference is real but smaller than the margin of {margin:.0%}",)
    return Comparison(
        stage=one.stage, base=one.base, relation=relation, ratio=one.ratio, low=one.low,
        high=one.high, confidence=one.confidence, n=one.n, spread=one.spread, method=one.method,
        p=one.p, p_adjusted=nan, verdict=verdict, reason=reason, rounds_needed=None,
        warnings=warnings, failures=one.failed.sentence if one.failed else None,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Family:
    """What the comparisons that are judged together share."""

    relation: Relation
    size: int
    margin: float
    alpha: float  # error rate of the family


def judge(one: Measured, p_adjusted: float, family: Family) -> Comparison:
    """Judge a comparison whose rounds were all planned beforehand."""
    verdict, reason = _verdict(one, p_adjusted, family)
    if one.not_judged is not None:
        verdict, reason = Verdict.NOT_JUDGED, one.not_judged
    needed = None
    if verdict is Verdict.UNDECIDED and one.no_verdict is None and one.failed is None:
        needed = rounds_needed(one, family)
        reason += needed_clause(needed)
    found = comparison(one, family.relation, verdict, reason, family.margin)
    return replace(found, p_adjusted=p_adjusted, rounds_needed=needed)


def inside(one: Measured, margin: float) -> bool:
    """Whether its interval lies within the margin."""
    return one.low >= 1 / (1 + margin) and one.high <= 1 + margin


def rounds_needed(one: Measured, family: Family) -> int | None:
    """Rounds in all for either verdict, should ratio and spread stay as they were seen."""
    effect = abs(float(np.log(one.ratio)))
    apart = rounds_for(effect, one.spread, family.alpha / family.size)
    # Either end of the interval may leave the margin: each gets half of the 20 % risk.
    equal = rounds_for(log1p(family.margin) - effect, one.spread, family.alpha, power=0.9)
    reachable = [needed for needed in (apart, equal) if needed is not None]
    return max(one.n + 1, min(reachable)) if reachable else None


def needed_clause(needed: int | None) -> str:
    """The end of an undecided verdict's reason."""
    if needed is None:
        return "; more rounds than are practical would be needed"
    return f"; {deciding_rounds(needed)}"


def _verdict(one: Measured, p_adjusted: float, family: Family) -> tuple[Verdict, str]:
    if one.no_verdict is not None:
        return Verdict.UNDECIDED, one.no_verdict
    verdict, reason = _verdict_of_interval(one, p_adjusted, family)
    if one.failed is None:
        return verdict, reason
    if verdict is Verdict.EQUIVALENT and one.failed.p_equivalent > family.alpha:
        return Verdict.UNDECIDED, (
            f"{reason}, but {one.failed.sentence}, and counted as the worst values they leave it"
            " open"
        )
    return verdict, f"{reason}; {one.failed.sentence}, counted as the worst values"


def _verdict_of_interval(one: Measured, p_adjusted: float, family: Family) -> tuple[Verdict, str]:
    apart = one.low > 1 or one.high < 1
    if apart and p_adjusted <= family.alpha:
        if one.low > 1:
            return Verdict.BETTER, "the interval lies above 1"
        return Verdict.WORSE, "the interval lies below 1"
    if inside(one, family.margin):
        return Verdict.EQUIVALENT, f"the interval lies within the margin of {family.margin:.0%}"
    if apart and one.failed is not None:
        return Verdict.UNDECIDED, (
            "the interval excludes 1, but with the failures that is not yet beyond chance"
            f" (Holm-adjusted p {p_adjusted:.3f})"
        )
    if apart:
        return Verdict.UNDECIDED, (
            f"the interval excludes 1, but among {plural(family.size, 'comparison')} that is not"
            f" yet beyond chance (Holm-adjusted p {p_adjusted:.3f})"
        )
    return Verdict.UNDECIDED, "the interval holds 1 and reaches beyond the margin"
