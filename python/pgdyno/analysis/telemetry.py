"""What sampling saw and cost, over the finished trials of each stage."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from pgdyno.analysis.telemetry_facts import Lacking, TelemetryCost, TelemetryFacts
from pgdyno.model.run import TelemetryReport, TrialRecord
from pgdyno.model.sampler_gaps import gaps_of

_STOPPED = "sampler {}"


def telemetry_facts(stages: Sequence[str], trials: Sequence[TrialRecord]) -> TelemetryFacts | None:
    """What was looked at; None: no trial tells, as before format 7.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
    """
    told = {
        stage: [
            one.result.telemetry
            for one in trials
            if one.stage == stage and one.result is not None and one.result.telemetry is not None
        ]
        for stage in stages
    }
    costs = [_cost(stage, reports) for stage, reports in told.items() if reports]
    if not costs:
        return None
    where: dict[tuple[str, str, str], list[str]] = {}
    for stage, reports in told.items():
        for lack in dict.fromkeys(lack for one in reports for lack in _lacks(one)):
            where.setdefault(lack, []).append(stage)
    lacking = tuple(Lacking(*lack, tuple(found)) for lack, found in where.items())
    return TelemetryFacts(tuple(costs), lacking)


def _cost(stage: str, reports: Sequence[TelemetryReport]) -> TelemetryCost:
    seconds = sum(one.seconds for one in reports)
    looks = sum(sampler.takes for one in reports for sampler in one.samplers)
    lost = sum(sampler.lost for one in reports for sampler in one.samplers)
    return TelemetryCost(
        stage=stage,
        set=reports[0].set,
        cpu_share=fmean(one.cpu_s / one.seconds if one.seconds else 0.0 for one in reports),
        looks_per_s=looks / seconds if seconds else 0.0,
        lost_share=lost / (looks + lost) if looks + lost else 0.0,
    )


def _lacks(report: TelemetryReport) -> list[tuple[str, str, str]]:
    """Name, reason and remedy: what was not there, what stopped, and what paused."""
    missing = [(one.name, one.reason, one.remedy) for one in report.missing]
    stopped = [
        (_STOPPED.format(one.name), f"it stopped: {one.failure}", "")
        for one in report.samplers
        if one.failure
    ]
    gaps = [(who, told, "") for who, told in gaps_of(report.samplers)]
    return missing + stopped + gaps
