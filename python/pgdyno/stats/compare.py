"""Is a stage faster than another, by how much, and how sure is that?

Not here: the interval itself (`interval`), the table and its outliers (`table`). The reasons for
the choices, and the measured error rates, stand in docs/concepts/statistics.md.

Two families of comparisons are made of a plan: each stage against the first, and each against the
one before; where loads differ, only those of the same load. Intervals hold one at a time, at the
confidence asked for. The verdicts "better" and "worse" moreover need a Holm-adjusted p value within
their family, so that a plan of equal stages has at most 5% chance of any false verdict in either
family. "Equivalent" needs no adjustment: its interval is twice as strict as a 5% equivalence test
asks for.

A trial that failed is no gap but evidence against its stage: no verdict in its favour, and no
"equivalent", that does not also hold with the failures counted as the worst of all values.

Source: S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of
Statistics 6(2), 1979.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import isfinite, sqrt

import numpy as np

from pgdyno.model.errors import PgdynoError
from pgdyno.model.looks import ALPHA
from pgdyno.stats.double_sampling import METHOD, Cycles
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.looks import Pair, Unjudged, all_judged, judge_at_looks
from pgdyno.stats.measured import Measured, Spread, measure, with_failures
from pgdyno.stats.table import Outlier, Table, outliers
from pgdyno.stats.verdict import Comparison, Family, Relation, Verdict, judge

MARGIN = 0.03
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class PlanComparison:
    """Every comparison of a plan."""

    against_first: tuple[Comparison, ...]  # all stages but the first (of a load), in plan order
    against_before: tuple[Comparison, ...]
    outliers: tuple[Outlier, ...]
    warnings: tuple[str, ...]  # of the plan as a whole
    margin: float
    confidence: float


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
    firsts, befores = families(table.stages, loads or {})
    measured = {
        pair: with_failures(measure(table, *pair, confidence, spread), table, margin)
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


def compare_at_looks(
    table: Table,
    rounds_max: int,
    *,
    margin: float = MARGIN,
    loads: Mapping[str, str] | None = None,
    cycles: Cycles | None = None,
    unjudged: Unjudged = all_judged,
) -> PlanComparison:
    """The same of a plan that stops when it is decided, by what its last looks say.

    Args:
        table: Throughput; what was not measured, or failed, has no value.
        rounds_max: The most rounds that are measured, a key of `model.looks.LOOKS`.
        margin: See `compare_plan`.
        loads: See `compare_plan`.
        cycles: What is known of whole checkpoint cycles.
        unjudged: See `looks.judge_at_looks`.
    """
    firsts, befores = families(table.stages, loads or {})

    def judged(pairs: Sequence[Pair], relation: Relation) -> tuple[Comparison, ...]:
        family = judge_at_looks(table, pairs, relation, rounds_max, margin, unjudged)
        return tuple(_unless_unknown(one, cycles) for one in family)

    found = outliers(table)
    return PlanComparison(
        against_first=judged(firsts, "first"),
        against_before=judged(befores, "before"),
        outliers=found,
        warnings=tuple(_outlier_warning(outlier) for outlier in found),
        margin=margin,
        confidence=1 - ALPHA,
    )


def _unless_unknown(one: Comparison, cycles: Cycles | None) -> Comparison:
    """The same, not judged where its windows say nothing of what the stages differ in."""
    if cycles is None or not (reason := cycles.not_judged(one.stage, one.base)):
        return one
    return replace(one, verdict=Verdict.NOT_JUDGED, reason=reason, rounds_needed=None)


def compare_pair(
    table: Table,
    stage: str,
    base: str,
    *,
    margin: float = MARGIN,
    confidence: float = CONFIDENCE,
    cycles: Cycles | None = None,
    rounds_max: int | None = None,
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
        rounds_max: Of a plan that stops when it is decided, see `compare_at_looks`.
    """
    if rounds_max is not None:
        family = judge_at_looks(table, [(stage, base)], "asked", rounds_max, margin)
        return _unless_unknown(family[0], cycles)
    one = with_failures(measure(table, stage, base, confidence, "own"), table, margin)
    if cycles is not None:
        one = _over_cycles(one, table, cycles)
    return _judge_family([one], "asked", margin, 1 - confidence)[0]


@dataclass(frozen=True, slots=True)
class Between:
    """A ratio of two stages without a verdict: one look beside the families asks for none."""

    ratio: float
    low: float
    high: float


def ratio_between(
    table: Table, stage: str, base: str, confidence: float, rounds_max: int | None = None
) -> Between | None:
    """The ratio of any two stages; None where they have no two rounds, or no look, to compare."""
    one: Measured | Comparison
    if rounds_max is None:
        one = measure(table, stage, base, confidence)
    else:
        one = judge_at_looks(table, [(stage, base)], "asked", rounds_max, MARGIN)[0]
    return Between(one.ratio, one.low, one.high) if isfinite(one.high) else None


def families(names: Sequence[str], loads: Mapping[str, str]) -> tuple[list[Pair], list[Pair]]:
    """Stages with the first one of their load, and with the one before, where both ask alike."""
    firsts: dict[str, str] = {}
    bases = {name: firsts.setdefault(loads.get(name, ""), name) for name in names}
    return (
        [(name, base) for name, base in bases.items() if base != name],
        [(name, before) for before, name in pairwise(names) if bases[name] == bases[before]],
    )


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


def _judge_family(
    measured: list[Measured], relation: Relation, margin: float, alpha: float
) -> tuple[Comparison, ...]:
    family = Family(relation, len(measured), margin, alpha)
    adjusted = holm(np.array([one.p for one in measured]))
    return tuple(judge(one, float(p), family) for one, p in zip(measured, adjusted, strict=True))


def _over_cycles(one: Measured, table: Table, cycles: Cycles) -> Measured:
    """The comparison over whole checkpoint cycles, where anchors tell of them."""
    if reason := cycles.not_judged(one.stage, one.base):
        return replace(one, not_judged=reason)
    joined = cycles.joined(table, one.stage, one.base, one.confidence)
    if joined is None:
        return one
    ratio, low, high = (float(np.exp(side[0])) for side in (joined.centre, joined.low, joined.high))
    p = float(joined.p[0])
    if one.failed is not None:
        p = max(p, one.failed.p_for(ratio))
    return replace(
        one, ratio=ratio, low=low, high=high, p=p, method=METHOD,
        spread=float(joined.error[0]) * sqrt(one.n),
    )  # fmt: skip


def _outlier_warning(outlier: Outlier) -> str:
    where = f"round {outlier.round} of stage {outlier.stages[0]}"
    if len(outlier.stages) == 2:
        where = f"round {outlier.round}: {outlier.stages[1]} against {outlier.stages[0]}"
    return (
        f"{where} lies {outlier.mads:.1f} MAD ({outlier.change:+.1%}) off what the other trials"
        f" let expect; interference? It is kept"
    )
