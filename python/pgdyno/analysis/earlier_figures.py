"""The figures that an earlier report has, beside those measured here, as ratios within each.

Ratios only: machine, version and size differ. Each metric is compared with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite

from pgdyno.analysis.earlier_facts import EarlierFigures, EarlierReportFacts
from pgdyno.analysis.facts import Spread
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.run import TrialRecord, TrialResult
from pgdyno.stats.compare import compare_plan
from pgdyno.stats.table import table_of
from pgdyno.stats.verdict import Comparison

METRICS: dict[str, Callable[[TrialResult], float | None]] = {
    "nopm": lambda result: result.nopm,
    "tpm_total": lambda result: result.tpm_total,
    "tps": lambda result: result.tps,
}


def reported_and_measured(plan: Plan, finished: Sequence[TrialRecord]) -> EarlierReportFacts | None:
    """The figures that the plan's stages carry, beside what was measured.

    Args:
        plan: The resolved plan.
        finished: Trials whose numbers may be used.
    """
    if plan.earlier is None:
        return None
    figures = [line for metric in METRICS for line in _of_metric(metric, plan, finished)]
    return EarlierReportFacts(
        plan.earlier.source, plan.earlier.machine, plan.earlier.runs, tuple(figures)
    )


def _of_metric(metric: str, plan: Plan, finished: Sequence[TrialRecord]) -> list[EarlierFigures]:
    stages = [stage for stage in plan.stages if metric in stage.earlier]
    if not stages:
        return []
    values = {
        (trial.stage, trial.round): METRICS[metric](trial.result)
        for trial in finished
        if trial.result
    }
    ratios = _ratios(stages, values, plan)
    base = stages[0]
    return [
        _line(metric, stage, base, values, ratios.get(stage.name))
        for stage in stages
    ]  # fmt: skip


def _ratios(
    stages: Sequence[Stage], values: dict[tuple[str, int], float | None], plan: Plan
) -> dict[str, Comparison]:
    rounds = {trial.round for trial in plan.trials}
    names = [stage.name for stage in stages]
    table = table_of({(name, r): values.get((name, r)) for name in names for r in rounds}, names)
    compared = compare_plan(table, margin=plan.protocol.margin, confidence=plan.protocol.confidence)
    return {one.stage: one for one in compared.against_first}


def _line(
    metric: str,
    stage: Stage,
    base: Stage,
    values: dict[tuple[str, int], float | None],
    now: Comparison | None,
) -> EarlierFigures:
    mine = tuple(v for (name, _), v in sorted(values.items()) if name == stage.name and v)
    spread = Spread.of(mine)
    known = now is not None and isfinite(now.high)
    ratio = 1.0 if stage is base else (now.ratio if now and isfinite(now.ratio) else None)
    return EarlierFigures(
        stage=stage.name,
        metric=metric,
        base=base.name,
        earlier=stage.earlier[metric],
        earlier_ratio=stage.earlier[metric] / base.earlier[metric],
        now=spread.median if spread else None,
        now_ratio=ratio if spread else None,
        low=now.low if now and known else None,
        high=now.high if now and known else None,
    )
