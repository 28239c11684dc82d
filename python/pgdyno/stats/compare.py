"""Is a stage faster than another, by how much, and how sure is that?

Not here: the interval itself (`interval`), the table and its outliers (`table`). The reasons for
the choices, and the measured error rates, stand in docs/concepts/statistics.md.

Two families of comparisons are made of a plan: each stage against the first, and each against the
one before; where loads differ, only those of the same load. Intervals hold one at a time, at the
confidence asked for. The verdicts "better" and "worse" moreover need a Holm-adjusted p value within
their family, so that a plan of equal stages has at most 5 % chance of any false verdict in either
family. "Equivalent" needs no adjustment: its interval is twice as strict as a 5 % equivalence test
asks for.

A trial that failed is no gap but evidence against its stage: no verdict in its favour, and no
"equivalent", that does not also hold with the failures counted as the worst of all values.

Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
Statistics 6(2), 1979.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import pairwise
from math import exp, inf, isfinite, log1p, nan, sqrt
from typing import Literal

import numpy as np

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.double_sampling import METHOD, Cycles
from pgdyno.stats.interval import (
    Estimate,
    FloatArray,
    Pool,
    estimate,
    hodges_lehmann,
    pooled_sd,
    worst_rank_p,
)
from pgdyno.stats.power import rounds_for
from pgdyno.stats.table import Outlier, Table, log_tpm, outliers

MARGIN = 0.03
CONFIDENCE = 0.95
SD_MEASURABLE_MIN = 1e-9  # pairs that agree better than this were copied, not measured

Relation = Literal["first", "before", "asked"]
Spread = Literal["own", "pooled"]


class Verdict(StrEnum):
    """What may be said of a stage against its base; more throughput is better."""

    BETTER = "better"
    WORSE = "worse"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    NOT_JUDGED = "not judged"  # the windows do not hold what the stages differ in


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
    p: float  # two-sided, of "no difference"; 1 without an interval
    p_adjusted: float  # by Holm, within the family
    verdict: Verdict
    reason: str  # of the verdict, one clause
    rounds_needed: int | None  # for a verdict, when undecided; None also: not within reach
    warnings: tuple[str, ...]
    failures: str | None = None  # e.g. "2 of 5 trials of tuned failed"; of the base, too


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Every comparison of a plan."""

    against_first: tuple[Comparison, ...]  # all stages but the first (of a load), in plan order
    against_before: tuple[Comparison, ...]
    outliers: tuple[Outlier, ...]
    warnings: tuple[str, ...]  # of the plan as a whole
    margin: float
    confidence: float


@dataclass(frozen=True, slots=True)
class _Measured:
    """A comparison before the rest of its family is known."""

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
    failed: _Failed | None = None  # None: no trial of either did
    not_judged: str | None = None  # why its windows say nothing of the stages


@dataclass(frozen=True, slots=True)
class _Failed:
    """Failed trials of a comparison, as evidence."""

    told: str
    p_better: float  # of the ranks, those that the stage lost counted against it
    p_worse: float  # the same of the base
    p_equivalent: float  # the larger of both, each from its end of the margin


@dataclass(frozen=True, slots=True)
class _Family:
    """What the comparisons that are judged together share."""

    relation: Relation
    size: int
    margin: float
    alpha: float  # error rate of the family


def compare_plan(
    table: Table,
    *,
    margin: float = MARGIN,
    confidence: float = CONFIDENCE,
    spread: Spread = "own",
    loads: Mapping[str, str] | None = None,
    cycles: Cycles | None = None,
) -> PlanComparison:
    """Compare every stage with the first one and with the one before.

    Args:
        table: Throughput, see `table_of`.
        loads: What each stage asks the server for; only stages that ask for the same are compared.
            None: all do.
        cycles: What is known of whole checkpoint cycles; None: windows are taken as they are.
        margin: Ratios from 1 / (1 + margin) to 1 + margin are too close to matter. Symmetric in
            the logarithm, so that swapping two stages mirrors the verdict.
        confidence: Of each interval, e.g. 0.95.
        spread: "own" takes the spread of each comparison from its own pairs and is right whatever
            the other stages do. "pooled" takes it from all stages; narrower for few rounds, and
            wrong where one stage is noisier than the others. It needs a complete table.

    Raises:
        PgdynoError: `margin` or `confidence` lies outside of what makes sense.
    """
    if not 0 < margin < 1:
        raise PgdynoError(f"margin is {margin}, between 0 and 1 expected")
    if not 0.5 <= confidence <= 0.999:
        raise PgdynoError(f"confidence is {confidence}, between 0.5 and 0.999 expected")
    warnings: list[str] = []
    if spread == "pooled" and not (table.tpm > 0).all():
        spread = "own"
        warnings.append("the table has gaps: spread taken from each comparison's own pairs")
    names = table.stages
    bases = _bases(names, loads or {})
    firsts = [(name, base) for name, base in bases.items() if base != name]
    befores = [(name, before) for before, name in pairwise(names) if bases[name] == bases[before]]
    measured = {
        pair: _with_failures(_measure(table, *pair, confidence, spread), table, margin)
        for pair in dict.fromkeys(firsts + befores)
    }
    if cycles is not None:
        measured = {pair: _over_cycles(one, table, cycles) for pair, one in measured.items()}
    alpha = 1 - confidence
    found = outliers(table)
    warnings += [_outlier_warning(outlier) for outlier in found]
    return PlanComparison(
        against_first=_judge_family([measured[pair] for pair in firsts], "first", margin, alpha),
        against_before=_judge_family([measured[pair] for pair in befores], "before", margin, alpha),
        outliers=found,
        warnings=tuple(warnings),
        margin=margin,
        confidence=confidence,
    )


def compare_pair(
    table: Table,
    stage: str,
    base: str,
    *,
    margin: float = MARGIN,
    confidence: float = CONFIDENCE,
    cycles: Cycles | None = None,
) -> Comparison:
    """Compare any two stages of one load: a family of its own, with nothing to adjust for.

    Who looks at many pairs and picks one will find a difference where there is none.

    Args:
        table: See `compare_plan`, as what follows.
        stage: One of its stages.
        base: Another one.
        margin: Ratios from 1 / (1 + margin) to 1 + margin are too close to matter.
        confidence: Of the interval.
        cycles: What is known of whole checkpoint cycles.
    """
    one = _with_failures(_measure(table, stage, base, confidence, "own"), table, margin)
    if cycles is not None:
        one = _over_cycles(one, table, cycles)
    return _judge_family([one], "asked", margin, 1 - confidence)[0]


@dataclass(frozen=True, slots=True)
class Between:
    """A ratio of two stages without a verdict: one look beside the families asks for none."""

    ratio: float
    low: float
    high: float


def ratio_between(table: Table, stage: str, base: str, confidence: float) -> Between | None:
    """The ratio of any two stages; None where they have no two rounds to compare."""
    one = _measure(table, stage, base, confidence, "own")
    return Between(one.ratio, one.low, one.high) if isfinite(one.high) else None


def _bases(names: Sequence[str], loads: Mapping[str, str]) -> dict[str, str]:
    """The first stage of each one's load."""
    firsts: dict[str, str] = {}
    return {name: firsts.setdefault(loads.get(name, ""), name) for name in names}


def holm(p: FloatArray) -> FloatArray:
    """Adjust the p values of a family: reject those at most alpha, and errors stay below alpha.

    Args:
        p: Shape `(comparisons,)`.

    Returns:
        Adjusted values in the same order, at most 1.
    """
    order = np.argsort(p, kind="stable")
    steps = np.arange(p.size, 0, -1)
    adjusted = np.empty_like(p)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p[order] * steps))
    return adjusted


def _measure(table: Table, stage: str, base: str, confidence: float, spread: Spread) -> _Measured:
    upper, lower = table.row(stage), table.row(base)
    used = (upper > 0) & (lower > 0)
    pairs = log_tpm(upper[used]) - log_tpm(lower[used])
    warnings, no_verdict = _gaps(table, stage, base)
    if pairs.size < 2:
        few = f"{pairs.size} rounds with both stages, 2 needed for an interval"
        ratio = exp(pairs[0]) if pairs.size else nan
        return _Measured(
            stage=stage, base=base, ratio=ratio, low=0.0, high=inf, confidence=confidence,
            n=pairs.size, spread=nan, method="none", p=1.0, no_verdict=few,
            warnings=(*warnings, few),
        )  # fmt: skip
    sd = float(pairs.std(ddof=1))
    if sd < SD_MEASURABLE_MIN:
        copied = f"all {pairs.size} rounds have the same ratio, which measured data never show"
        return _Measured(
            stage=stage, base=base, ratio=float(np.exp(hodges_lehmann(pairs))), low=0.0, high=inf,
            confidence=confidence, n=pairs.size, spread=sd, method="none", p=1.0,
            no_verdict=copied, warnings=(*warnings, copied),
        )  # fmt: skip
    pool = None
    if spread == "pooled":
        pool = Pool(pooled_sd(log_tpm(table.tpm)[np.newaxis]), len(table.stages))
        sd = float(pool.sd[0])
    fit = estimate(pairs[np.newaxis], confidence, pool)
    return _from_fit(fit, stage, base, pairs.size, sd, no_verdict, warnings)


def _from_fit(
    fit: Estimate,
    stage: str,
    base: str,
    n: int,
    sd: float,
    no_verdict: str | None,
    warnings: tuple[str, ...],
) -> _Measured:
    if n == 2:
        warnings += ("2 rounds: the interval is honest but very wide, measure at least 3",)
    ratio, low, high = (float(np.exp(side[0])) for side in (fit.centre, fit.low, fit.high))
    return _Measured(
        stage=stage, base=base, ratio=ratio, low=low, high=high, confidence=fit.confidence, n=n,
        spread=sd, method=fit.method, p=float(fit.p[0]), no_verdict=no_verdict, warnings=warnings,
    )  # fmt: skip


def _with_failures(one: _Measured, table: Table, margin: float) -> _Measured:
    """The same with the failed trials of both as evidence against whose they are."""
    told = [text for name in (one.stage, one.base) if (text := table.failures(name))]
    if not told:
        return one
    upper, lower = table.row(one.stage), table.row(one.base)
    used = (upper > 0) & (lower > 0)
    pairs = log_tpm(upper[used]) - log_tpm(lower[used])
    lost, lost_by_base = table.lost(one.stage, one.base), table.lost(one.base, one.stage)

    def p_of(pairs: FloatArray, lost: int) -> float:
        return worst_rank_p(pairs, lost) if lost else 0.0  # nothing lost asks for nothing more

    failed = _Failed(
        told="; ".join(told),
        p_better=p_of(pairs, lost),
        p_worse=p_of(-pairs, lost_by_base),
        p_equivalent=max(
            p_of(log1p(margin) + pairs, lost), p_of(log1p(margin) - pairs, lost_by_base)
        ),
    )
    p = max(one.p, failed.p_better if one.ratio > 1 else failed.p_worse)
    lived = f"{failed.told}; ratio and interval are those of the rounds in which both lived"
    return replace(
        one, p=p, failed=failed, warnings=(*one.warnings, lived),
        no_verdict=f"{one.no_verdict}; {failed.told}" if one.no_verdict else None,
    )  # fmt: skip


def _gaps(table: Table, stage: str, base: str) -> tuple[tuple[str, ...], str | None]:
    """Say which rounds cannot be used, and whether that forbids a verdict."""
    warnings, no_verdict = [], None
    for name in (stage, base):
        row = table.row(name)
        for round_, value in zip(table.rounds, row, strict=True):
            if np.isnan(value):
                warnings.append(f"round {round_} left out: no valid trial of {name}")
            elif value == 0:
                # Leaving it out flatters the stage that stood still: no verdict then.
                no_verdict = f"{name} completed nothing in round {round_}"
                warnings.append(f"round {round_} left out: {no_verdict}, the ratio is undefined")
    return tuple(warnings), no_verdict


def _judge_family(
    measured: list[_Measured], relation: Relation, margin: float, alpha: float
) -> tuple[Comparison, ...]:
    family = _Family(relation, len(measured), margin, alpha)
    adjusted = holm(np.array([one.p for one in measured]))
    return tuple(_judge(one, float(p), family) for one, p in zip(measured, adjusted, strict=True))


def _judge(one: _Measured, p_adjusted: float, family: _Family) -> Comparison:
    verdict, reason = _verdict(one, p_adjusted, family)
    if one.not_judged is not None:
        verdict, reason = Verdict.NOT_JUDGED, one.not_judged
    warnings = one.warnings
    needed = None
    if verdict is Verdict.UNDECIDED and one.no_verdict is None and one.failed is None:
        needed = _rounds_needed(one, family)
        reason += _needed_clause(needed)
    elif verdict in {Verdict.BETTER, Verdict.WORSE} and _inside(one, family.margin):
        warnings += (f"the difference is real but smaller than the margin of {family.margin:.0%}",)
    return Comparison(
        stage=one.stage, base=one.base, relation=family.relation, ratio=one.ratio, low=one.low,
        high=one.high, confidence=one.confidence, n=one.n, spread=one.spread, method=one.method,
        p=one.p, p_adjusted=p_adjusted, verdict=verdict, reason=reason, rounds_needed=needed,
        warnings=warnings, failures=one.failed.told if one.failed else None,
    )  # fmt: skip


def _over_cycles(one: _Measured, table: Table, cycles: Cycles) -> _Measured:
    """The comparison over whole checkpoint cycles, where anchors tell of them."""
    if reason := cycles.not_judged(one.stage, one.base):
        return replace(one, not_judged=reason)
    joined = cycles.joined(table, one.stage, one.base, one.confidence)
    if joined is None:
        return one
    ratio, low, high = (float(np.exp(side[0])) for side in (joined.centre, joined.low, joined.high))
    p = float(joined.p[0])
    if one.failed is not None:
        p = max(p, one.failed.p_better if ratio > 1 else one.failed.p_worse)
    return replace(
        one, ratio=ratio, low=low, high=high, p=p, method=METHOD,
        spread=float(joined.error[0]) * sqrt(one.n),
    )  # fmt: skip


def _verdict(one: _Measured, p_adjusted: float, family: _Family) -> tuple[Verdict, str]:
    if one.no_verdict is not None:
        return Verdict.UNDECIDED, one.no_verdict
    verdict, reason = _verdict_of_interval(one, p_adjusted, family)
    if one.failed is None:
        return verdict, reason
    if verdict is Verdict.EQUIVALENT and one.failed.p_equivalent > family.alpha:
        return Verdict.UNDECIDED, (
            f"{reason}, but {one.failed.told}, and counted as the worst values they leave it open"
        )
    return verdict, f"{reason}; {one.failed.told}, counted as the worst values"


def _verdict_of_interval(one: _Measured, p_adjusted: float, family: _Family) -> tuple[Verdict, str]:
    apart = one.low > 1 or one.high < 1
    if apart and p_adjusted <= family.alpha:
        if one.low > 1:
            return Verdict.BETTER, "the interval lies above 1"
        return Verdict.WORSE, "the interval lies below 1"
    if _inside(one, family.margin):
        return Verdict.EQUIVALENT, f"the interval lies within the margin of {family.margin:.0%}"
    if apart and one.failed is not None:
        return Verdict.UNDECIDED, (
            "the interval excludes 1, but with the failures that is not yet beyond chance"
            f" (Holm-adjusted p {p_adjusted:.3f})"
        )
    if apart:
        return Verdict.UNDECIDED, (
            f"the interval excludes 1, but among {family.size} comparisons that is not yet beyond"
            f" chance (Holm-adjusted p {p_adjusted:.3f})"
        )
    return Verdict.UNDECIDED, "the interval holds 1 and reaches beyond the margin"


def _inside(one: _Measured, margin: float) -> bool:
    return one.low >= 1 / (1 + margin) and one.high <= 1 + margin


def _rounds_needed(one: _Measured, family: _Family) -> int | None:
    """Rounds in all for either verdict, should ratio and spread stay as they were seen."""
    effect = abs(float(np.log(one.ratio)))
    apart = rounds_for(effect, one.spread, family.alpha / family.size)
    # Either end of the interval may leave the margin: each gets half of the 20 % risk.
    equal = rounds_for(log1p(family.margin) - effect, one.spread, family.alpha, power=0.9)
    reachable = [needed for needed in (apart, equal) if needed is not None]
    return max(one.n + 1, min(reachable)) if reachable else None


def _needed_clause(needed: int | None) -> str:
    if needed is None:
        return "; more rounds than are practical would be needed"
    return f"; about {needed} rounds in all would decide it, should ratio and spread stay"


def _outlier_warning(outlier: Outlier) -> str:
    where = f"round {outlier.round} of stage {outlier.stages[0]}"
    if len(outlier.stages) == 2:
        where = f"round {outlier.round}: {outlier.stages[1]} against {outlier.stages[0]}"
    return (
        f"{where} lies {outlier.mads:.1f} MAD ({outlier.change:+.1%}) off what the other trials"
        f" let expect; interference? It is kept"
    )
