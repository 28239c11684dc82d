"""From a run file to the facts of a report; everything is computed from what the file holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pgdyno.analysis import words
from pgdyno.analysis.blocking import with_blocking
from pgdyno.analysis.changes import found_configuration
from pgdyno.analysis.comparable import shared
from pgdyno.analysis.compliance import requirements
from pgdyno.analysis.deviations import deviations
from pgdyno.analysis.disk_facts import StorageInUse
from pgdyno.analysis.earlier_figures import reported_and_measured
from pgdyno.analysis.facts import LABELS, SCHEMA, Comparison, Facts, StageFacts
from pgdyno.analysis.judged import cycles_of, judged, plan_in
from pgdyno.analysis.losses import Losses
from pgdyno.analysis.one_device import against_itself, disks_below, kept_in_memory
from pgdyno.analysis.others import OtherConditions, beside_each_other, other_conditions
from pgdyno.analysis.process_lines import process_lines
from pgdyno.analysis.processes import process_rows
from pgdyno.analysis.profile_facts import ProfileFacts
from pgdyno.analysis.profiles import profile_facts
from pgdyno.analysis.protocol import protocol_costs
from pgdyno.analysis.replaced import replaced_facts
from pgdyno.analysis.replica import replica_rows, stale_reads
from pgdyno.analysis.replica_facts import LABEL, ReplicaRow
from pgdyno.analysis.resources import resource_rows
from pgdyno.analysis.response_map import response_maps
from pgdyno.analysis.sampled import sampled
from pgdyno.analysis.seen import TalliesByTrial
from pgdyno.analysis.servers import servers_facts
from pgdyno.analysis.session_facts import StageSessions
from pgdyno.analysis.sessions import round_sessions, stage_sessions
from pgdyno.analysis.shape import outages, part_facts, recovery_facts, step_facts
from pgdyno.analysis.signals import signals
from pgdyno.analysis.snapshots import plan_facts, statement_rows, table_rows
from pgdyno.analysis.stages import comparison_facts, noise_facts, throughput_table
from pgdyno.analysis.storage_in_use import storage_in_use
from pgdyno.analysis.stored import Stored
from pgdyno.analysis.telemetry import telemetry_facts
from pgdyno.analysis.timeline_facts import Phases
from pgdyno.analysis.trust import merged_conditions
from pgdyno.analysis.views import server_views
from pgdyno.analysis.wal import stage_wal
from pgdyno.imports.simultaneous import simultaneous
from pgdyno.model.build import Build
from pgdyno.model.errors import PlanError
from pgdyno.model.imported import Imported
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan
from pgdyno.model.run import Fixture, RunInfo, TrialRecord
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed
from pgdyno.stats.compare import compare_pair
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
    info, stored = run.info(), stored or Stored(run)
    fixtures = [each for one in run.fixtures() for each in (one, *one.others)]
    found = judged(run, stored, losses)
    plan, trials, finished, stages = found.plan, found.trials, found.finished, found.stages
    series, snapshots = found.series, found.snapshots
    names, versions = [stage.name for stage in plan.stages], _versions(plan, info)
    tallies = {one.number: stored.tallies(one.number) for one in finished}
    parts, met = part_facts(names, finished, merged_quantiles), _sessions(tallies, names, finished)
    servers, replicas = servers_facts(plan, finished, parts), replica_rows(plan, finished, series)
    everything = sampled(names, finished, series, tallies, snapshots)
    return Facts(
        schema=SCHEMA, label=_label(plan, replicas), ident=info.ident, pgdyno=info.pgdyno,
        command=info.command, plan=plan.name, question=plan.question, answer=found.answer,
        headline=plan.workload.headline, started_ns=info.started_ns, notes=plan.notes,
        trials_planned=len(trials), trials_finished=len(finished), quick=plan.quick,
        stages=stages, trials=found.measured, steps=step_facts(names, finished, merged_quantiles),
        replaced=tuple(replaced_facts(trial) for trial in found.replaced), outages=outages(trials),
        parts=() if servers else parts, earlier=reported_and_measured(plan, finished),
        imported=(others := beside_each_other(run.imported())),
        imported_together=simultaneous(others), recovery=recovery_facts(plan.stages, finished),
        imported_conditions=_beside(plan, info, stages, versions, others),
        cycles=found.cycles.facts, sessions=met,
        storage=_storage(stages, finished, stored, info.host),
        resources=resource_rows(names, finished, series, tallies, snapshots),
        processes=process_rows(names, finished),
        signals=signals(names, finished, series, snapshots),
        response_maps=response_maps(names, finished, series),
        process_lines=process_lines(names, finished, series),
        statements=statement_rows(names, finished, snapshots),
        wal=stage_wal(names, finished), tables=table_rows(names, finished, snapshots),
        plans=plan_facts(names, finished, snapshots),
        views=server_views(names, finished, series, snapshots, tallies),
        protocol=protocol_costs(plan, finished),
        compliance=requirements(plan, finished), margin=plan.protocol.margin,
        confidence=plan.protocol.confidence, looks=plan.protocol.judged_after,
        noise_floor=noise_facts(plan, found.table, plan.protocol.confidence),
        placement=found.placed, warnings=found.warnings, audit=found.audit,
        conditions=merged_conditions(fixtures, trials),
        checked_rounds=plan.protocol.checked_rounds, same=shared(plan, finished),
        differences=found.differing, mistakes=found.mistakes,
        phases=_phases(info, trials, found.replaced),
        deviations=(*deviations(info, names), *stale_reads(plan)), versions=versions,
        reference=words.flat(plan.reference), host=words.flat(asdict(info.host)),
        build=words.flat(asdict(info.build)) if _runs_installed(plan) else {},
        builds={one.label: words.flat(asdict(one)) for one in _builds(plan)},
        server=info.server, configuration=found_configuration(trials), diagnosis=(),  # by others
        fixture=_fixture(fixtures[0]) if fixtures else {},
        further_fixtures=tuple(_fixture(one) for one in fixtures[1:]),
        profiles=_profiles(run, names, finished, stages), fleet=found.fleet, servers=servers,
        replica=replicas, telemetry=telemetry_facts(names, finished, everything),
    )  # fmt: skip


def _label(plan: Plan, replicas: Sequence[ReplicaRow]) -> str:
    """What stands beside every figure."""
    label = LABELS[plan.workload.headline]
    return f"{label}; {LABEL}" if replicas else label


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
    tallies: TalliesByTrial, names: Sequence[str], finished: Sequence[TrialRecord]
) -> tuple[StageSessions, ...]:
    found = (stage_sessions(name, finished, tallies) for name in names)
    return tuple(with_blocking(one, finished, tallies) for one in found if one is not None)


def _storage(
    stages: Sequence[StageFacts],
    finished: Sequence[TrialRecord],
    stored: Stored,
    host: HostManifest,
) -> StorageInUse | None:
    return storage_in_use(
        stages, finished, lambda one: round_sessions(one, stored.tallies(one.number)),
        disks_below(host), kept_in_memory(host),
    )  # fmt: skip


def compare_stages(run: RunFile, stage: str, base: str) -> Comparison:
    """Compare any two stages of a run that ask for the same load.

    Raises:
        PlanError: There is no such stage, or they ask the server for different things.
    """
    info = run.info()
    plan = plan_in(info)
    names = [one.name for one in plan.stages]
    for name in (stage, base):
        if name not in names:
            raise PlanError(f"no stage is called {name!r}, there are {listed(names)}")
    if plan.stage(stage).workload.load != plan.stage(base).workload.load:
        raise PlanError(
            f"{stage} and {base} ask the server for different loads",
            "Their throughputs do not compare.",
        )
    trials = run.trials()
    cycles = cycles_of(plan, against_itself(plan, info.host), trials, Stored(run))
    table = throughput_table(plan, trials, run.replaced(), cycles.short)
    one = compare_pair(
        table, stage, base, margin=plan.protocol.margin, confidence=plan.protocol.confidence,
        cycles=cycles.compared, rounds_max=plan.protocol.rounds_max,
    )  # fmt: skip
    return comparison_facts(one)


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


def _phases(
    info: RunInfo, trials: Sequence[TrialRecord], replaced: Sequence[TrialRecord]
) -> Phases:
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
    stopped_s = _stopped_s(trials, replaced)
    between_s = max(0.0, total_s - measuring_s - sum(other_s.values()) - stopped_s)
    return Phases(measuring_s, other_s, between_s, stopped_s, total_s)


def _stopped_s(trials: Sequence[TrialRecord], replaced: Sequence[TrialRecord]) -> float:
    """How long the run stood still, with what the trials that were interrupted had taken.

    When one was interrupted nobody could write down; it has no end.
    """
    begins = [one.started_ns for one in (*trials, *replaced) if one.started_ns is not None]
    broken = [one.started_ns for one in replaced
              if one.started_ns is not None and one.ended_ns is None]  # fmt: skip
    return sum(
        (min(later) - begun) / 1e9
        for begun in broken
        if (later := [one for one in begins if one > begun])
    )


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
