"""Whether the slowest requests of a stage take longer: percentiles compared as throughput is.

A percentile of each window is one value, and windows are paired by round: what spreads within a
window is no measure of what spreads between windows. A window counts where enough requests lie
beyond the percentile, and where it is no lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pgdyno.analysis.answer_facts import BEYOND_MIN, TailFacts
from pgdyno.analysis.facts import StageFacts
from pgdyno.analysis.stages import comparison_facts
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.stats.compare import compare_at_looks, compare_plan
from pgdyno.stats.table import Table, table_of
from pgdyno.stats.verdict import Comparison
from pgdyno.stats.window_end import exact_below
from pgdyno.store.histogram import Quantiles, merged_quantiles

PERCENTILES = {"p99": 0.99, "p99.9": 0.999}
SHORT = "anchors correct throughput alone, and the short windows beside them hold no whole cycle"


def with_tails(
    stages: Sequence[StageFacts],
    plan: Plan,
    trials: Sequence[TrialRecord],
    throughput: Table,
    not_judged: Callable[[str, str], str | None],
) -> tuple[StageFacts, ...]:
    """Stages with what `tails` finds of each."""
    found = tails(plan, trials, throughput, not_judged, merged_quantiles)
    return tuple(replace(one, tails=found.get(one.name, ())) for one in stages)


def tails(
    plan: Plan,
    trials: Sequence[TrialRecord],
    throughput: Table,
    not_judged: Callable[[str, str], str | None],
    quantiles: Quantiles,
) -> dict[str, tuple[TailFacts, ...]]:
    """Each stage against the first of its load; by stage, shallow percentiles first.

    Args:
        plan: The resolved plan.
        trials: All trials that are needed.
        throughput: What failed in which round; see `stages.throughput_table`.
        not_judged: Why two stages are not judged for want of whole cycles, if they are not.
        quantiles: As `store.histogram.merged_quantiles`.
    """
    finished = [trial for trial in trials if trial.state is TrialState.FINISHED]
    kinds = _main_kinds(plan, finished)
    found: dict[str, tuple[TailFacts, ...]] = {}
    anchored = {stage.name for stage in plan.stages if stage.checkpoints == "anchors"}
    for percentile, share in PERCENTILES.items():
        values = {
            (t.stage, t.round): _value(t, kinds.get(t.stage), share, quantiles) for t in trials
        }
        # As a rate, so that more is better here as well.
        rates = {where: None if ns is None else 1e9 / ns for where, ns in values.items()}
        table = table_of(rates, [stage.name for stage in plan.stages])
        for one in _compared(plan, replace(table, attempts=throughput.attempts)):
            short = SHORT if anchored & {one.stage, one.base} else None
            reason = not_judged(one.stage, one.base) or short
            kind = kinds.get(one.stage)
            if kind and (fact := _fact(one, kind, percentile, reason)).rounds:
                found[one.stage] = (*found.get(one.stage, ()), fact)
    return found


def _main_kinds(plan: Plan, finished: Sequence[TrialRecord]) -> dict[str, str]:
    """By stage, the first kind that any trial of its load timed, as the tables of latency have it.

    Stages without a trial of their load have none.
    """
    loads = {stage.name: stage.workload.load for stage in plan.stages}
    found: dict[str, str] = {}
    for name, load in loads.items():
        for trial in finished:
            if trial.stage == name and trial.result:
                timed = [kind.kind for kind in trial.result.kinds if kind.window.timed]
                found |= {load: timed[0]} if timed and load not in found else {}
    return {name: found[load] for name, load in loads.items() if load in found}


def _value(trial: TrialRecord, kind: str | None, share: float, quantiles: Quantiles) -> int | None:
    """A percentile of one window in ns; None where it is not known well enough."""
    if trial.state is not TrialState.FINISHED or trial.result is None:
        return None
    part = next((one for one in trial.result.kinds if one.kind == kind), None)
    if part is None or part.window.timed * (1 - share) < BEYOND_MIN:
        return None
    ns = quantiles([part.response], [share])[0]
    bound = exact_below([part.response_ns])
    return ns if ns > 0 and (bound is None or ns < bound) else None


def _compared(plan: Plan, table: Table) -> tuple[Comparison, ...]:
    protocol = plan.protocol
    loads: Mapping[str, str] = {stage.name: stage.workload.load for stage in plan.stages}
    if protocol.rounds_max is not None:
        compared = compare_at_looks(table, protocol.rounds_max, margin=protocol.margin, loads=loads)
    else:
        compared = compare_plan(
            table, margin=protocol.margin, confidence=protocol.confidence, loads=loads
        )
    return compared.against_first


def _fact(one: Comparison, kind: str, percentile: str, reason: str | None) -> TailFacts:
    rates = comparison_facts(one)
    return TailFacts(
        kind=kind,
        percentile=percentile,
        base=rates.base,
        ratio=None if rates.ratio is None else 1 / rates.ratio,
        low=None if rates.high is None else 1 / rates.high,
        high=None if not rates.low else 1 / rates.low,
        confidence=rates.confidence,
        rounds=rates.rounds,
        verdict="not judged" if reason else rates.verdict,
        reason=reason or _of_times(rates.reason),
    )


def _of_times(reason: str) -> str:
    """The reason of a verdict on rates, said of times."""
    swapped = {"above 1": "below 1", "below 1": "above 1"}
    for side, other in swapped.items():
        if side in reason:
            return reason.replace(side, other)
    return reason
