"""From a run file to the facts of a report; everything is computed from what the file holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

from pgdyno.analysis import words
from pgdyno.analysis.answer import answer, further_doubts
from pgdyno.analysis.answer_facts import Doubt
from pgdyno.analysis.ceiling import ceiling_of_host, ceiling_of_trial
from pgdyno.analysis.changes import found_configuration
from pgdyno.analysis.comparable import asked_of, differences, shared
from pgdyno.analysis.compliance import requirements
from pgdyno.analysis.credit import with_credit
from pgdyno.analysis.cycles import PlanCycles, plan_cycles
from pgdyno.analysis.deviations import deviations
from pgdyno.analysis.disk_facts import StorageInUse
from pgdyno.analysis.earlier_figures import reported_and_measured
from pgdyno.analysis.facts import LABELS, SCHEMA, Comparison, Facts, Phases, StageFacts, TrialFacts
from pgdyno.analysis.hosts import fleet_facts
from pgdyno.analysis.judge import placement
from pgdyno.analysis.losses import Losses, with_losses
from pgdyno.analysis.mistakes import Seen, mistake_facts
from pgdyno.analysis.one_device import against_itself, disks_below, on_one_device
from pgdyno.analysis.others import OtherConditions, beside_each_other, other_conditions
from pgdyno.analysis.predictions import with_predictions
from pgdyno.analysis.processes import process_rows
from pgdyno.analysis.profile_facts import ProfileFacts
from pgdyno.analysis.profiles import profile_facts
from pgdyno.analysis.protocol import protocol_costs
from pgdyno.analysis.replaced import replaced_facts
from pgdyno.analysis.replica import replica_rows, stale_reads
from pgdyno.analysis.replica_facts import LABEL, ReplicaRow
from pgdyno.analysis.resources import resource_rows
from pgdyno.analysis.servers import servers_facts
from pgdyno.analysis.session_facts import StageSessions
from pgdyno.analysis.sessions import round_sessions, stage_sessions
from pgdyno.analysis.shape import outages, part_facts, recovery_facts, step_facts
from pgdyno.analysis.signals import signals
from pgdyno.analysis.snapshots import plan_facts, statement_rows, table_rows
from pgdyno.analysis.stages import comparison_facts, noise_facts, stage_facts, throughput_table
from pgdyno.analysis.steadiness import cycle_steadiness
from pgdyno.analysis.stopping import still_needed
from pgdyno.analysis.storage_in_use import storage_in_use
from pgdyno.analysis.stored import Stored
from pgdyno.analysis.tails import with_tails
from pgdyno.analysis.telemetry import telemetry_facts
from pgdyno.analysis.trials import trial_facts
from pgdyno.analysis.trust import merged_audit, merged_conditions
from pgdyno.analysis.wal import stage_wal
from pgdyno.imports.simultaneous import simultaneous
from pgdyno.model.build import Build
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.imported import Imported
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan
from pgdyno.model.run import Fixture, RunInfo, Series, SnapshotRows, TrialRecord, TrialState
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed
from pgdyno.stats.compare import PlanComparison, compare_at_looks, compare_pair, compare_plan
from pgdyno.stats.looks import Unjudged
from pgdyno.stats.table import Table
from pgdyno.store import RunFile
from pgdyno.store.histogram import merged_quantiles
from pgdyno.store.profiles import profile_of

MEASURING = "drive"  # the phase that measures; `window` is a part of it, told apart
PART_OF = {"window": MEASURING}


def analyse(run: RunFile, stored: Stored | None = None, losses: Losses | None = None) -> Facts:
    """Read a run file, finished or not, and compute what a report says.

    Args:
        run: The run file.
        stored: Of it; None: nobody else reads that.
        losses: A drill, whose measured losses stand beside the stages; None: there is none.

    Raises:
        StoreError: The file cannot be read.
        PgdynoError: The plan in it asks for an impossible comparison.
    """
    info, replaced = run.info(), run.replaced()
    fixtures = [each for one in run.fixtures() for each in (one, *one.others)]
    stored, plan = stored or Stored(run), plan_in(info)
    trials = still_needed(plan, info.host, run.trials(), replaced)
    finished = [trial for trial in trials if trial.state is TrialState.FINISHED]
    series = {trial.number: stored.series(trial.number) for trial in trials}
    cycles = _cycles(plan, itself := against_itself(plan, info.host), trials, stored)
    table = throughput_table(plan, trials, replaced, cycles.short)
    compared = _compared(plan, table, cycles, itself)
    snapshots = {trial.number: stored.snapshots(trial.number) for trial in trials}
    ceilings = _host_ceilings(info, plan, trials)
    measured = _trial_facts(series, snapshots, info, plan, trials, ceilings)
    stages = _judged(plan, trials, measured, compared, cycles, series, table, losses)
    names, versions = [stage.name for stage in plan.stages], _versions(plan, info)
    audit = merged_audit(finished, {one.name: asked_of(one.workload) for one in plan.stages})
    differing = differences(plan, finished)
    mistakes = mistake_facts(Seen(plan, finished, stages, differing))
    placed = placement(finished, server_on_host=plan.target.kind != "running")
    again = sorted({one.round for one in replaced if not one.host_lost})
    fleet = fleet_facts(names, trials, ceilings, server_on_host=plan.target.kind != "running")
    parts, met = part_facts(names, finished, merged_quantiles), _sessions(stored, names, finished)
    servers, replicas = servers_facts(plan, finished, parts), replica_rows(plan, finished, series)
    said = answer(stages, measured, audit, differing, metric=plan.workload.headline,
                  quick=plan.quick, further=[*_chance(stages, info), *further_doubts(
                      again, mistakes, placed, cycles.facts, fleet, stages)])  # fmt: skip
    return Facts(
        schema=SCHEMA, label=_label(plan, replicas), ident=info.ident, pgdyno=info.pgdyno,
        command=info.command, plan=plan.name, question=plan.question, answer=said,
        headline=plan.workload.headline, started_ns=info.started_ns, notes=plan.notes,
        trials_planned=len(trials), trials_finished=len(finished), quick=plan.quick,
        stages=stages, trials=measured, steps=step_facts(names, finished, merged_quantiles),
        replaced=tuple(replaced_facts(trial) for trial in replaced), outages=outages(trials),
        parts=() if servers else parts, earlier=reported_and_measured(plan, finished),
        imported=(others := beside_each_other(run.imported())),
        imported_together=simultaneous(others), recovery=recovery_facts(names, finished),
        imported_conditions=_beside(plan, info, stages, versions, others), cycles=cycles.facts,
        sessions=met, storage=_storage(stages, finished, stored, info.host),
        resources=resource_rows(names, finished, series), processes=process_rows(names, finished),
        signals=signals(names, finished, series, snapshots),
        statements=statement_rows(names, finished, snapshots),
        wal=stage_wal(names, finished), tables=table_rows(names, finished, snapshots),
        plans=plan_facts(names, finished, snapshots), protocol=protocol_costs(plan, finished),
        compliance=requirements(plan, finished), margin=plan.protocol.margin,
        confidence=plan.protocol.confidence, looks=plan.protocol.judged_after,
        noise_floor=noise_facts(plan, table, plan.protocol.confidence), placement=placed,
        warnings=compared.warnings, audit=audit, conditions=merged_conditions(fixtures, trials),
        checked_rounds=plan.protocol.checked_rounds, same=shared(plan, finished),
        differences=differing, mistakes=mistakes, phases=_phases(info, trials),
        deviations=(*deviations(info, names), *stale_reads(plan)), versions=versions,
        reference=words.flat(plan.reference), host=words.flat(asdict(info.host)),
        build=words.flat(asdict(info.build)) if _runs_installed(plan) else {},
        builds={one.label: words.flat(asdict(one)) for one in _builds(plan)},
        server=info.server, configuration=found_configuration(trials), diagnosis=(),  # by others
        fixture=_fixture(fixtures[0]) if fixtures else {},
        further_fixtures=tuple(_fixture(one) for one in fixtures[1:]),
        profiles=_profiles(run, names, finished, stages), fleet=fleet, servers=servers,
        replica=replicas, telemetry=telemetry_facts(names, finished),
    )  # fmt: skip


def _chance(stages: Sequence[StageFacts], info: RunInfo) -> Iterator[Doubt]:
    """Disks that are one: who reads only the first screen has to know, too."""
    found = on_one_device(stages, words.flat(asdict(info.host)))
    return (Doubt(one, grave=False) for one in found)


def _label(plan: Plan, replicas: Sequence[ReplicaRow]) -> str:
    """What stands beside every figure."""
    label = LABELS[plan.workload.headline]
    return f"{label}; {LABEL}" if replicas else label


def _judged(
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


def _beside(
    plan: Plan,
    info: RunInfo,
    stages: Sequence[StageFacts],
    versions: Sequence[str],
    others: Sequence[Imported],
) -> OtherConditions | None:
    rungs = [one.rung for one in stages]
    return other_conditions(plan, rungs, versions, info.started_ns, others)


def _sessions(
    stored: Stored, names: Sequence[str], finished: Sequence[TrialRecord]
) -> tuple[StageSessions, ...]:
    tallies = {one.number: stored.tallies(one.number) for one in finished}
    found = (stage_sessions(name, finished, tallies) for name in names)
    return tuple(one for one in found if one is not None)


def _storage(
    stages: Sequence[StageFacts],
    finished: Sequence[TrialRecord],
    stored: Stored,
    host: HostManifest,
) -> StorageInUse | None:
    return storage_in_use(
        stages, finished, lambda one: round_sessions(one, stored.tallies(one.number)),
        disks_below(host),
    )  # fmt: skip


def plan_in(info: RunInfo) -> Plan:
    """The plan of a run.

    Raises:
        PlanError: It has none.
    """
    if info.plan is None:
        raise PlanError(f"run {info.ident} has no plan", f"It was made by `{info.command}`.")
    return info.plan


def compare_stages(run: RunFile, stage: str, base: str) -> Comparison:
    """Compare any two stages of a run that ask for the same load.

    Raises:
        PgdynoError: There is no such stage, or they ask the server for different things.
    """
    info = run.info()
    plan = plan_in(info)
    names = [one.name for one in plan.stages]
    for name in (stage, base):
        if name not in names:
            raise PgdynoError(f"no stage is called {name!r}, there are {listed(names)}")
    if plan.stage(stage).workload.load != plan.stage(base).workload.load:
        raise PgdynoError(
            f"{stage} and {base} ask the server for different loads",
            "Their throughputs do not compare.",
        )
    trials = run.trials()
    cycles = _cycles(plan, against_itself(plan, info.host), trials, Stored(run))
    table = throughput_table(plan, trials, run.replaced(), cycles.short)
    one = compare_pair(
        table, stage, base, margin=plan.protocol.margin, confidence=plan.protocol.confidence,
        cycles=cycles.compared, rounds_max=plan.protocol.rounds_max,
    )  # fmt: skip
    return comparison_facts(one)


def _cycles(
    plan: Plan, itself: Unjudged, trials: Sequence[TrialRecord], stored: Stored
) -> PlanCycles:
    """Whole cycles, and which comparisons are not judged: for want of them, or of two storages."""
    found = plan_cycles(plan, trials, stored)
    of_cycles = found.compared.not_judged

    def not_judged(stage: str, base: str) -> str | None:
        return itself(stage, base) or of_cycles(stage, base)

    return replace(found, compared=replace(found.compared, not_judged=not_judged))


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
            server_on_host=plan.target.kind != "running",
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


def _runs_installed(plan: Plan) -> bool:
    """Whether any stage runs on the target's own installation."""
    return any(stage.build is None for stage in plan.stages)


def _profiles(
    run: RunFile,
    names: Sequence[str],
    finished: Sequence[TrialRecord],
    stages: Sequence[StageFacts],
) -> ProfileFacts | None:
    found = [(one.stage, profile_of(run, one.number)) for one in finished]
    bases = {one.name: one.to_first.base for one in stages if one.to_first}
    return profile_facts(names, [(stage, one) for stage, one in found if one], bases)


def _builds(plan: Plan) -> list[Build]:
    """The builds that stages name, each once."""
    return list({stage.build.ident: stage.build for stage in plan.stages if stage.build}.values())


def _versions(plan: Plan, info: RunInfo) -> tuple[str, ...]:
    own = info.build.version or "PostgreSQL"
    return tuple(dict.fromkeys(s.build.version if s.build else own for s in plan.stages))


def _phases(info: RunInfo, trials: Sequence[TrialRecord]) -> Phases:
    measuring_s = 0.0
    other_s: dict[str, float] = {}
    for trial in trials:
        for phase, seconds in (trial.result.phases_s if trial.result else {}).items():
            if phase == MEASURING:
                measuring_s += seconds
            elif phase not in PART_OF:
                other_s[phase] = other_s.get(phase, 0.0) + seconds
    ends = [trial.ended_ns for trial in trials if trial.ended_ns is not None]
    total_s = (max(ends) - info.started_ns) / 1e9 if ends else 0.0
    between_s = max(0.0, total_s - measuring_s - sum(other_s.values()))
    return Phases(measuring_s, other_s, between_s, total_s)


def _fixture(fixture: Fixture) -> dict[str, str]:
    report = asdict(fixture.loaded) if fixture.loaded else {}
    loaded = {k: v for k, v in report.items() if isinstance(v, int | float | str)}
    return {
        "ident": fixture.ident,
        **words.flat(asdict(fixture.shape)),
        "size": bytes_text(fixture.data_bytes),
        "restored by": fixture.restore,
        "loaded": "by an earlier run" if fixture.reused else "in this run",
        **words.flat(loaded, "load."),
    }
