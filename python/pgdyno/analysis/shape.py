"""What a load was made of and what became of it: steps, databases, outages, recovery."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

from pgdyno.analysis.facts import Outage, PartFacts, RecoveryFacts, Spread, StepFacts
from pgdyno.model.plan import Stage
from pgdyno.model.run import KindResult, StepKind, TrialRecord, TrialResult
from pgdyno.stats.window_end import exact_below
from pgdyno.store.histogram import Quantiles

NS = 1e9
_MINUTE_S = 60.0

Kinds = Sequence[KindResult] | Sequence[StepKind]


def step_facts(
    stages: Sequence[str], finished: Sequence[TrialRecord], quantiles: Quantiles
) -> tuple[StepFacts, ...]:
    """The steps of each stage's window, its finished rounds together.

    Args:
        stages: Their names, in plan order.
        finished: Trials.
        quantiles: As `store.histogram.merged_quantiles`.
    """
    found = []
    for stage, results in _by_stage(stages, finished):
        for number in range(max(len(result.steps) for result in results)):
            steps = [result.steps[number] for result in results if number < len(result.steps)]
            found.append(
                StepFacts(
                    stage=stage,
                    number=number + 1,
                    seconds=steps[0].seconds,
                    factor=steps[0].factor,
                    ended_per_s=_spread([step.ended / step.seconds for step in steps]),
                    failed=sum(kind.counts.failed for step in steps for kind in step.kinds),
                    skipped=sum(kind.counts.skipped for step in steps for kind in step.kinds),
                    percentiles_ns=_merged([step.kinds for step in steps], quantiles),
                    exact_below_ns=_exact_below([step.kinds for step in steps]),
                )
            )
    return tuple(found)


def part_facts(
    stages: Sequence[str], finished: Sequence[TrialRecord], quantiles: Quantiles
) -> tuple[PartFacts, ...]:
    """The databases that each stage drove at once; none where there was one."""
    found = []
    for stage, results in _by_stage(stages, finished):
        for name in dict.fromkeys(part.name for result in results for part in result.parts):
            rates, kinds = [], []
            for result in results:
                mine = [kind for part in result.parts if part.name == name for kind in part.kinds]
                rates.append(_throughput(result, mine))
                kinds.append(mine)
            times = _merged(kinds, quantiles)
            found.append(PartFacts(stage, name, _spread(rates), times, _exact_below(kinds)))
    return tuple(found)


def outages(trials: Sequence[TrialRecord]) -> tuple[Outage, ...]:
    """When connections were gone, in any trial that has a result."""
    return tuple(
        Outage(
            trial=trial.number,
            stage=trial.stage,
            round=trial.round,
            start_s=(gap.start_unix_ns - trial.result.window_ns[0]) / NS,
            seconds=None if gap.end_unix_ns is None else (gap.end_unix_ns - gap.start_unix_ns) / NS,
            connections=gap.connections,
        )
        for trial in trials
        if trial.result is not None
        for gap in trial.result.gaps
    )


def recovery_facts(
    stages: Sequence[Stage], finished: Sequence[TrialRecord]
) -> tuple[RecoveryFacts, ...]:
    """What each stage's server took to come back after it was killed, where it was.

    Args:
        stages: Of the plan, in its order.
        finished: Trials.
    """
    guarded = {one.name: one.guard for one in stages}
    found, speeds = [], []
    for stage, results in _by_stage(list(guarded), finished):
        known = [result.recovery for result in results if result.recovery is not None]
        if known:
            columns = ("ready_s", "redo_s", "replayed_bytes")
            ready, redo, replayed = (
                _spread([float(getattr(one, name)) for one in known]) for name in columns
            )
            found.append(RecoveryFacts(stage, ready, redo, replayed, guarded[stage], None))
            speeds.append(median(_throughput(result, result.kinds) for result in results))
    if len(found) < 2:
        return tuple(found)
    points = [(-speed, one.ready_s.median) for one, speed in zip(found, speeds, strict=True)]
    return tuple(
        replace(one, on_front=not any(_dominates(other, point) for other in points))
        for one, point in zip(found, points, strict=True)
    )


def _dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether it is nowhere larger, and somewhere smaller."""
    return one != other and all(a <= b for a, b in zip(one, other, strict=True))


def _by_stage(
    stages: Sequence[str], finished: Sequence[TrialRecord]
) -> Iterator[tuple[str, list[TrialResult]]]:
    for stage in stages:
        results = [trial.result for trial in finished if trial.stage == stage and trial.result]
        if results:
            yield stage, results


def _throughput(result: TrialResult, kinds: Sequence[KindResult]) -> float:
    """In the metric of the trial: NOPM, or tps."""
    if result.nopm is None:
        return sum(kind.window.succeeded for kind in kinds) / result.window_s
    orders = sum(kind.window.succeeded for kind in kinds if kind.kind == "new_order")
    return orders / result.window_s * _MINUTE_S


def _spread(values: Sequence[float]) -> Spread:
    spread = Spread.of(tuple(values))
    assert spread is not None, "a stage with results has rounds"
    return spread


def _merged(rounds: Sequence[Kinds], quantiles: Quantiles) -> tuple[int, ...] | None:
    """p50, p95, p99 and the maximum of the first kind, rounds merged; None where none ended."""
    parts = [kind.response for kind in _main(rounds)]
    if not parts:
        return None
    found = tuple(quantiles(parts, (0.5, 0.95, 0.99, 1.0)))
    return found if any(found) else None


def _exact_below(rounds: Sequence[Kinds]) -> int | None:
    """From which value on these are lower bounds."""
    return exact_below(kind.response_ns for kind in _main(rounds))


def _main(rounds: Sequence[Kinds]) -> list[KindResult | StepKind]:
    """The first kind of each round."""
    every: list[KindResult | StepKind] = [kind for kinds in rounds for kind in kinds]
    return [kind for kind in every if kind.kind == every[0].kind]
