"""Judging a family of comparisons at looks that were fixed before the first trial.

A look comes when all trials of its rounds have ended. Each judges what is not decided yet, and what
is decided stays so, whatever is measured later. It is a function of the table alone: the plan that
asks whether to go on, and the report years later, hear the same.

At a look a stage is better or worse when its estimate exceeds the critical value for as many
comparisons as are still open; each that is found lowers what the others must exceed (Holm, step by
step, with the values of `sequential`). It is equivalent when its repeated interval, which holds at
all looks together, lies within the margin. It is given up when neither is likely any more.

Source of the step-down at looks: W. Maurer, F. Bretz, "Multiple testing in group sequential trials
using graphical approaches", Statistics in Biopharmaceutical Research 5(4), 2013.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, log1p, nan, sqrt
from statistics import NormalDist

import numpy as np

from pgdyno.model.looks import ALPHA, LOOKS
from pgdyno.model.wording import plural
from pgdyno.stats.interval import Estimate, FloatArray, Pool, hodges_lehmann
from pgdyno.stats.measured import Measured, agrees_exactly, measure, with_failures
from pgdyno.stats.sequential import critical
from pgdyno.stats.table import Table, log_tpm
from pgdyno.stats.verdict import (
    Comparison,
    Family,
    Relation,
    Verdict,
    comparison,
    inside,
    needed_clause,
    rounds_needed,
)

Pair = tuple[str, str]
"""A stage and its base."""
Unjudged = Callable[[str, str], str | None]
"""Why a stage and its base are not judged, whatever is measured; None: they are."""

IN_REACH_MIN = 0.1  # a comparison with less chance of any verdict until the end is given up
NEUMANN_PAIRS_MIN = 8  # fewer tell too little of their order
NEUMANN_CLEAN_WARNED = 0.05  # share of independent rounds that get a warning


@dataclass(frozen=True, slots=True)
class _Look:
    """One look: which rounds it has, and what all comparisons at it share."""

    index: int  # among the looks, from 0
    rounds: int
    rounds_max: int
    family: Family

    @property
    def is_last(self) -> bool:
        return self.rounds == self.rounds_max

    @property
    def each_alpha(self) -> float:
        """What a test that is made at every look anew may spend at each."""
        return self.family.alpha / len(LOOKS[self.rounds_max])


def all_judged(_stage: str, _base: str) -> None:
    """No pair is left out."""


def judge_at_looks(
    table: Table,
    pairs: Sequence[Pair],
    relation: Relation,
    rounds_max: int,
    margin: float,
    unjudged: Unjudged = all_judged,
) -> tuple[Comparison, ...]:
    """Judge a family, as far as it is measured.

    A pair that is not judged is no part of the family, in which it would raise what the others have
    to exceed, and needs no round after the first look.

    Args:
        table: Throughput of all planned rounds; those without a value are not measured, or failed.
        pairs: The family.
        relation: What its bases are.
        rounds_max: The most rounds that are measured, a key of `model.looks.LOOKS`.
        margin: See `compare.compare_plan`.
        unjudged: What is known of pairs before anything is measured.
    """
    left_out = {pair: reason for pair in pairs if (reason := unjudged(*pair))}
    family = Family(relation, len(pairs) - len(left_out), margin, ALPHA)
    judged: dict[Pair, Comparison] = {}
    for index, rounds in enumerate(LOOKS[rounds_max]):
        part = table.until(rounds)
        seen = {
            pair: _measured(part, pair, rounds_max, margin)
            for pair in pairs
            if not (pair in judged and judged[pair].stopped) and _ended(part, pair, rounds)
        }
        look = _Look(index, rounds, rounds_max, family)
        ended = {pair: seen.pop(pair) for pair in left_out if pair in seen}
        judged |= {pair: _left_out(one, look, left_out[pair]) for pair, one in ended.items()}
        judged |= _judge(seen, judged.values(), look)
    found = {pair: judged.get(pair) or _unseen(table, pair, relation, rounds_max) for pair in pairs}
    for pair, reason in left_out.items():
        found[pair] = replace(found[pair], verdict=Verdict.NOT_JUDGED, reason=reason)
    return tuple(found.values())


def _left_out(one: Measured, look: _Look, reason: str) -> Comparison:
    """What a look shows of a pair that it does not judge."""
    found = comparison(one, look.family.relation, Verdict.NOT_JUDGED, reason, look.family.margin)
    return replace(found, p=nan, look=look.rounds, stopped=True)


def _ended(part: Table, pair: Pair, rounds: int) -> bool:
    return len(part.rounds) == rounds and all(part.ended(stage).all() for stage in pair)


def _index(pairs: int, rounds_max: int) -> int | None:
    """The look whose critical value so many pairs must exceed; fewer than it has are stricter."""
    reached = [index for index, rounds in enumerate(LOOKS[rounds_max]) if rounds <= pairs]
    return reached[-1] if reached else None


def _measured(part: Table, pair: Pair, rounds_max: int, margin: float) -> Measured:
    def repeated(pairs: FloatArray, _confidence: float, _pool: Pool | None) -> Estimate:
        centre, count = hodges_lehmann(pairs), pairs.shape[1]
        index = _index(count, rounds_max)
        half = inf if index is None else critical(rounds_max, 1, index)
        error = pairs.std(axis=1, ddof=1) / sqrt(count)
        looks = plural(len(LOOKS[rounds_max]), "look")
        return Estimate(
            centre, centre - half * error, centre + half * error, p=np.full(len(pairs), nan),
            confidence=1 - ALPHA,
            method=f"group-sequential, {looks}: repeated interval of the studentized"
            " Hodges-Lehmann estimate",
        )  # fmt: skip

    one = measure(part, *pair, 1 - ALPHA, fit=repeated)
    if (warning := dependence(_logs(part, pair))) is not None:
        one = replace(one, warnings=(*one.warnings, warning))
    return with_failures(one, part, margin)


def _logs(table: Table, pair: Pair) -> FloatArray:
    """Log ratios of the rounds that both have, in order."""
    stage, base = pair
    logs = log_tpm(table.row(stage)) - log_tpm(table.row(base))
    return logs[~np.isnan(logs)]


def _judge(
    seen: Mapping[Pair, Measured], before: Iterable[Comparison], look: _Look
) -> dict[Pair, Comparison]:
    """What a look says of the comparisons that it sees."""
    apart = {(one.stage, one.base) for one in before if one.verdict in _APART}
    still_open = look.family.size - len(apart)
    while found := {
        pair for pair, one in seen.items() if pair not in apart and _beyond(one, still_open, look)
    }:
        apart |= found
        still_open -= len(found)
    return {
        pair: _comparison(one, look, still_open, apart=pair in apart) for pair, one in seen.items()
    }


_APART = (Verdict.BETTER, Verdict.WORSE)


def _beyond(one: Measured, still_open: int, look: _Look) -> bool:
    """Whether a stage is better or worse, with as many comparisons open."""
    index = _index(one.n, look.rounds_max)
    if one.no_verdict is not None or index is None:
        return False
    if one.failed and one.failed.p_for(one.ratio) > look.each_alpha / still_open:
        return False
    limit = critical(look.rounds_max, still_open, index)
    return abs(log(one.ratio)) > limit * one.spread / sqrt(one.n)


def _comparison(one: Measured, look: _Look, still_open: int, *, apart: bool) -> Comparison:
    verdict, reason = _verdict(one, look, still_open, apart=apart)
    stopped, needed = verdict is not Verdict.UNDECIDED, None
    if verdict is Verdict.UNDECIDED and one.no_verdict is None:
        given_up = not look.is_last and not _in_reach(one, look, still_open)
        stopped = given_up or look.is_last
        if not stopped and look.family.relation == "first":
            reason += f"; the next look comes after {LOOKS[look.rounds_max][look.index + 1]}"
        if stopped and one.failed is None:
            needed = rounds_needed(one, look.family)
            reason += f"; no verdict within {plural(look.rounds_max, 'round')} is likely" * given_up
            reason += needed_clause(needed)
    elif verdict is Verdict.UNDECIDED:  # two rounds and more that allow none: others will not, too
        stopped = look.is_last or (one.n >= 2 and not agrees_exactly(one))
    found = comparison(one, look.family.relation, verdict, reason, look.family.margin)
    # What was measured has a p of its own, raised by failures; a look has none.
    return replace(found, p=nan, rounds_needed=needed, look=look.rounds, stopped=stopped)


def _verdict(one: Measured, look: _Look, still_open: int, *, apart: bool) -> tuple[Verdict, str]:
    if one.no_verdict is not None:
        return Verdict.UNDECIDED, one.no_verdict
    counted = f"; {one.failed.sentence}, counted as the worst values" if one.failed else ""
    at = f"at the look after {plural(look.rounds, 'round')} the interval"
    if apart:
        verdict, side = (Verdict.BETTER, "above") if one.ratio > 1 else (Verdict.WORSE, "below")
        return verdict, f"{at} lies {side} 1{counted}"
    if inside(one, look.family.margin):
        within = f"{at} lies within the margin of {look.family.margin:.0%}"
        if one.failed is None or one.failed.p_equivalent <= look.each_alpha:
            return Verdict.EQUIVALENT, within + counted
        return Verdict.UNDECIDED, f"{within}, but with the failures that is not beyond chance"
    if one.low > 1 or one.high < 1:
        among = (
            "with the failures" if one.failed else f"with {plural(still_open, 'comparison')} open"
        )
        return Verdict.UNDECIDED, f"{at} excludes 1, but {among} that is not yet beyond chance"
    return Verdict.UNDECIDED, f"{at} holds 1 and reaches beyond the margin"


def _in_reach(one: Measured, look: _Look, still_open: int) -> bool:
    """Whether a verdict has a chance until the last look, should ratio and spread stay."""
    if one.spread <= 0 or one.n >= look.rounds_max:
        return True
    last, rounds = len(LOOKS[look.rounds_max]) - 1, look.rounds_max
    end = NormalDist(log(one.ratio), one.spread * sqrt(1 / one.n - 1 / rounds))
    error = one.spread / sqrt(rounds)
    beyond = critical(rounds, still_open, last) * error
    chance = 1 - end.cdf(beyond) + end.cdf(-beyond)
    room = log1p(look.family.margin) - critical(rounds, 1, last) * error
    if room > 0:
        chance += end.cdf(room) - end.cdf(-room)
    return chance >= IN_REACH_MIN


def _unseen(table: Table, pair: Pair, relation: Relation, rounds_max: int) -> Comparison:
    """A comparison before its first look: a ratio of what there is, and nothing said of it."""
    stage, base = pair
    logs = _logs(table, pair)
    first = LOOKS[rounds_max][0]
    ratio = float(np.exp(hodges_lehmann(logs))) if logs.size else nan
    return Comparison(
        stage=stage, base=base, relation=relation, ratio=ratio, low=0.0, high=inf,
        confidence=1 - ALPHA, n=int(logs.size), spread=nan, method="none", p=nan, p_adjusted=nan,
        verdict=Verdict.UNDECIDED, reason=f"the first look comes after {plural(first, 'round')}",
        rounds_needed=None, warnings=(),
    )  # fmt: skip


def dependence(pairs: FloatArray) -> str | None:
    """Whether rounds follow each other too smoothly to be independent, as all intervals assume.

    By the ratio of von Neumann, the mean squared step between successive rounds over the variance:
    about 2 for independent rounds, less where a round resembles the one before.

    Args:
        pairs: Log ratios in the order of the rounds, shape `(rounds,)`.

    Source: J. von Neumann, "Distribution of the ratio of the mean square successive difference to
    the variance", Annals of Mathematical Statistics 12(4), 1941.
    """
    count = pairs.size
    if count < NEUMANN_PAIRS_MIN or not (variance := float(pairs.var())):
        return None
    ratio = float((np.diff(pairs) ** 2).sum()) / (count * variance)
    spread = sqrt(4 * (count - 2) / (count**2 - 1))
    limit = 2 + NormalDist().inv_cdf(NEUMANN_CLEAN_WARNED) * spread
    if ratio >= limit:
        return None
    return (
        f"rounds are not independent: successive ones differ by {ratio:.2f} variances, and less"
        f" than {limit:.2f} is rare by chance; the interval is too narrow"
    )
