"""What a run's numbers are worth: its stages compared, the answer, and what puts that in doubt."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from pgdyno.analysis import words
from pgdyno.analysis.answer import answer, further_doubts
from pgdyno.analysis.answer_facts import Answer, Doubt
from pgdyno.analysis.ceiling import ceiling_of_host, ceiling_of_trial
from pgdyno.analysis.comparable import asked_of, differences
from pgdyno.analysis.credit import with_credit
from pgdyno.analysis.cycles import PlanCycles, plan_cycles
from pgdyno.analysis.facts import (
    AuditFacts,
    Difference,
    Judgement,
    MistakeFacts,
    StageFacts,
    TrialFacts,
)
from pgdyno.analysis.host_facts import FleetFacts
from pgdyno.analysis.host_use import busy_doubts
from pgdyno.analysis.hosts import fleet_facts
from pgdyno.analysis.judge import placement
from pgdyno.analysis.losses import Losses, with_losses
from pgdyno.analysis.mistakes import Seen, mistake_facts
from pgdyno.analysis.one_device import against_itself, on_one_device
from pgdyno.analysis.predictions import with_predictions
from pgdyno.analysis.stages import stage_facts, throughput_table
from pgdyno.analysis.steadiness import cycle_steadiness
from pgdyno.analysis.stopping import still_needed
from pgdyno.analysis.stored import Stored
from pgdyno.analysis.tails import with_tails
from pgdyno.analysis.trials import trial_facts
from pgdyno.analysis.trust import merged_audit
from pgdyno.analysis.vacuum import off_doubts
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.run import RunInfo, Series, SnapshotRows, TrialRecord, TrialState
from pgdyno.model.server_host import HOST_HERE
from pgdyno.stats.compare import PlanComparison, compare_at_looks, compare_plan
from pgdyno.stats.looks import Unjudged
from pgdyno.stats.table import Table
from pgdyno.store import RunFile
from pgdyno.store.histogram import merged_quantiles


@dataclass(frozen=True, slots=True)
class Judged:
    """All that stands behind a run's answer, and the answer."""

    plan: Plan
    trials: tuple[TrialRecord, ...]  # that are needed
    finished: tuple[TrialRecord, ...]
    replaced: tuple[TrialRecord, ...]  # of rounds that were measured again
    series: Mapping[int, dict[str, Series]]  # by trial
    snapshots: Mapping[int, Sequence[SnapshotRows]]  # by trial
    cycles: PlanCycles
    table: Table
    measured: tuple[TrialFacts, ...]
    stages: tuple[StageFacts, ...]
    warnings: tuple[str, ...]  # of the comparisons
    audit: tuple[AuditFacts, ...]
    differing: tuple[Difference, ...]
    mistakes: tuple[MistakeFacts, ...]
    placed: Judgement
    fleet: FleetFacts | None
    answer: Answer


def judged(run: RunFile, stored: Stored, losses: Losses | None = None) -> Judged:
    """Read a run file, finished or not, and judge its stages.

    Args:
        run: The run file.
        stored: Of it.
        losses: A drill, whose measured losses stand beside the stages; None: there is none.

    Raises:
        StoreError: The file cannot be read.
        PgdynoError: The plan in it asks for an impossible comparison.
    """
    info, replaced = run.info(), run.replaced()
    plan = plan_in(info)
    trials = still_needed(plan, info.host, run.trials(), replaced)
    finished = [trial for trial in trials if trial.state is TrialState.FINISHED]
    series = {trial.number: stored.series(trial.number) for trial in trials}
    cycles = cycles_of(plan, itself := against_itself(plan, info.host), trials, stored)
    table = throughput_table(plan, trials, replaced, cycles.short)
    compared = _compared(plan, table, cycles, itself)
    snapshots = {trial.number: stored.snapshots(trial.number) for trial in trials}
    ceilings = _host_ceilings(info, plan, trials)
    measured = _trial_facts(series, snapshots, info, plan, trials, ceilings)
    stages = _stages(plan, trials, measured, compared, cycles, series, table, losses)
    names = [stage.name for stage in plan.stages]
    audit = merged_audit(finished, {one.name: asked_of(one.workload) for one in plan.stages})
    differing = differences(plan, finished)
    mistakes = mistake_facts(Seen(plan, finished, stages, differing))
    here = server_is_here(info)
    placed = placement(finished, server_on_host=here)
    again = sorted({one.round for one in replaced if not one.host_lost})
    fleet = fleet_facts(names, trials, ceilings, server_on_host=here)
    further = further_doubts(again, mistakes, placed, cycles.facts, fleet, stages)
    said = answer(stages, measured, audit, differing, metric=plan.workload.headline,
                  quick=plan.quick, looks=plan.protocol.looks,
                  further=[*busy_doubts(plan, finished, server_on_host=here),
                           *off_doubts(plan, finished), *_chance(stages, info),
                           *further])  # fmt: skip
    return Judged(
        plan, tuple(trials), tuple(finished), tuple(replaced), series, snapshots, cycles, table,
        measured, stages, compared.warnings, audit, tuple(differing), mistakes, placed, fleet, said,
    )  # fmt: skip


def plan_in(info: RunInfo) -> Plan:
    """The plan of a run.

    Raises:
        PlanError: It has none.
    """
    if info.plan is None:
        raise PlanError(
            f"run {info.ident} has no stages of a plan that were measured, as this takes",
            f"It was made by `{info.command}`; `pgdyno report` writes its page.",
        )
    return info.plan


def server_is_here(info: RunInfo) -> bool:
    """Whether the server runs on the machine of the driver's head: ours does, others' may.

    Of several servers that are not ours only the first was looked at.
    """
    target = plan_in(info).target
    if target.kind != "running":
        return True
    return len(target.servers) <= 1 and info.server.get("host", "").startswith(HOST_HERE)


def cycles_of(
    plan: Plan, itself: Unjudged, trials: Sequence[TrialRecord], stored: Stored
) -> PlanCycles:
    """Whole cycles, and which comparisons are not judged: for want of them, or of two storages."""
    found = plan_cycles(plan, trials, stored)
    of_cycles = found.compared.not_judged

    def not_judged(stage: str, base: str) -> str | None:
        return itself(stage, base) or of_cycles(stage, base)

    return replace(found, compared=replace(found.compared, not_judged=not_judged))


def _chance(stages: Sequence[StageFacts], info: RunInfo) -> Iterator[Doubt]:
    """Disks that are one: who reads only the first screen has to know, too."""
    found = on_one_device(stages, words.flat(asdict(info.host)))
    return (Doubt(one, grave=False) for one in found)


def _stages(
    plan: Plan,
    trials: Sequence[TrialRecord],
    measured: Sequence[TrialFacts],
    compared: PlanComparison,
    cycles: PlanCycles,
    series: Mapping[int, dict[str, Series]],
    table: Table,
    losses: Losses | None,
) -> tuple[StageFacts, ...]:
    """The stages with all that is said of each."""
    found = stage_facts(plan, trials, measured, compared, merged_quantiles, cycles,
                        cycle_steadiness(plan, trials, series))  # fmt: skip
    found = with_predictions(with_credit(found, plan, table, compared), plan)
    return with_tails(with_losses(found, plan, losses), plan, trials, table,
                      cycles.compared.not_judged)  # fmt: skip


def _compared(plan: Plan, table: Table, cycles: PlanCycles, itself: Unjudged) -> PlanComparison:
    protocol, loads = plan.protocol, {stage.name: stage.workload.load for stage in plan.stages}
    if protocol.rounds_max is not None:
        return compare_at_looks(
            table,
            protocol.rounds_max,
            margin=protocol.margin,
            loads=loads,
            cycles=cycles.compared,
            unjudged=itself,
        )
    return compare_plan(
        table, margin=protocol.margin, confidence=protocol.confidence, loads=loads,
        cycles=cycles.compared,
    )  # fmt: skip


def _trial_facts(
    series: Mapping[int, dict[str, Series]],
    snapshots: Mapping[int, Sequence[SnapshotRows]],
    info: RunInfo,
    plan: Plan,
    trials: Sequence[TrialRecord],
    ceilings: Mapping[int, Mapping[str, float]],
) -> tuple[TrialFacts, ...]:
    return tuple(
        trial_facts(
            trial,
            series[trial.number],
            server_on_host=server_is_here(info),
            snapshots=snapshots[trial.number],
            quantiles=merged_quantiles,
            ceiling_per_s=ceiling_of_trial(info, plan.stage(trial.stage).workload, trial.result)
            if trial.result and not trial.result.fleet
            else None,
            host_ceilings=ceilings.get(trial.number, {}),
        )
        for trial in trials
    )


def _host_ceilings(
    info: RunInfo, plan: Plan, trials: Sequence[TrialRecord]
) -> dict[int, dict[str, float]]:
    """What the driver of each host could have reached, by trial and host, as far as known."""
    found: dict[int, dict[str, float]] = {}
    for trial in trials:
        fleet = trial.result.fleet if trial.result else None
        for host in fleet.hosts if fleet else ():
            ceiling = ceiling_of_host(info, plan.stage(trial.stage).workload, host)
            if ceiling is not None:
                found.setdefault(trial.number, {})[host.name] = ceiling
    return found
