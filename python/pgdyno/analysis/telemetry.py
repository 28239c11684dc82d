"""What sampling saw and cost, over the finished trials of each stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from statistics import fmean

from pgdyno.analysis.telemetry_facts import (
    Lacking,
    Looks,
    Sampled,
    SamplerUse,
    TelemetryCost,
    TelemetryFacts,
)
from pgdyno.model.run import SamplerCost, TelemetryReport, TrialRecord
from pgdyno.model.sampler_gaps import gaps_of

_STOPPED = "sampler {}"


def telemetry_facts(
    stages: Sequence[str], trials: Sequence[TrialRecord], sampled: Sampled | None = None
) -> TelemetryFacts | None:
    """What was looked at; None: no trial tells, as before format 7.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        sampled: What was seen; None: it does not matter.
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
    looks = [one for stage, reports in told.items() if reports for one in _looks(stage, reports)]
    return TelemetryFacts(
        tuple(costs), tuple(looks), lacking, _uses(told), Sampled() if sampled is None else sampled
    )


def _uses(told: Mapping[str, Sequence[TelemetryReport]]) -> tuple[SamplerUse, ...]:
    """Of each sampler, those first that took most of what they may."""
    read = {
        stage: {name: _of_one(name, reports) for name in _names(reports)}
        for stage, reports in told.items()
    }
    budgets = {
        one.name: one.budget_us
        for reports in told.values() for each in reports for one in each.samplers
    }  # fmt: skip
    uses = [
        SamplerUse(name, budget_us, tuple(of.get(name) for of in read.values()))
        for name, budget_us in budgets.items()
    ]
    return tuple(sorted(uses, key=_share_of_budget, reverse=True))


def _names(reports: Sequence[TelemetryReport]) -> set[str]:
    return {one.name for each in reports for one in each.samplers}


def _of_one(name: str, reports: Sequence[TelemetryReport]) -> float | None:
    """µs of one look, of all trials together."""
    found = [one for each in reports for one in each.samplers if one.name == name]
    takes = sum(one.takes for one in found)
    return 1e6 * sum(one.cpu_s for one in found) / takes if takes else None


def _share_of_budget(use: SamplerUse) -> float:
    most = max((one for one in use.stages if one is not None), default=0.0)
    return most / use.budget_us


def _cost(stage: str, reports: Sequence[TelemetryReport]) -> TelemetryCost:
    found = _added(stage, "", reports, _is_any)
    return TelemetryCost(
        stage=stage,
        set=reports[0].set,
        cpu_share=fmean(one.cpu_s / one.seconds if one.seconds else 0.0 for one in reports),
        looks_per_s=found.reached_per_s,
        lost_share=found.lost_share,
    )


def _looks(stage: str, reports: Sequence[TelemetryReport]) -> Iterator[Looks]:
    """Of each tally, and of all series together; snapshots are read at ends of windows alone."""
    tallies = dict.fromkeys(
        one.name for each in reports for one in each.samplers if one.kind == "tally"
    )
    for name in tallies:
        yield _added(stage, name, reports, partial(_is_named, name))
    series = _added(stage, "series", reports, _is_series)
    if series.samplers:
        yield series


def _is_any(_: SamplerCost) -> bool:
    return True


def _is_named(name: str, one: SamplerCost) -> bool:
    return one.name == name


def _is_series(one: SamplerCost) -> bool:
    return one.kind == "series"


def _added(
    stage: str,
    what: str,
    reports: Sequence[TelemetryReport],
    is_meant: Callable[[SamplerCost], bool],
) -> Looks:
    """All trials together: each sampler by the seconds in which it was read."""
    meant = [[one for one in each.samplers if is_meant(one)] for each in reports]
    flat = [one for each in meant for one in each]
    takes, lost = sum(one.takes for one in flat), sum(one.lost for one in flat)
    per_s = {
        kind: fmean(
            sum(getattr(one, kind) / (one.seconds or report.seconds) for one in each)
            if report.seconds else 0.0
            for report, each in zip(reports, meant, strict=True)
        )
        for kind in ("takes", "lost")
    }  # fmt: skip
    return Looks(
        stage, what, max(map(len, meant)), per_s["takes"] + per_s["lost"], per_s["takes"],
        lost / (takes + lost) if takes + lost else None,
    )  # fmt: skip


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
