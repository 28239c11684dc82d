"""A stage of a run as it stands beside others, and what runs tell of the noise of sessions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from statistics import median

from pgdyno.analysis import words
from pgdyno.analysis.beside_facts import Group, Side
from pgdyno.analysis.changes import effective_of
from pgdyno.analysis.cycles import plan_cycles
from pgdyno.analysis.efficiency import transactions
from pgdyno.analysis.facts import Facts, Spread
from pgdyno.analysis.hosts import machine_text
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.others import told_of
from pgdyno.analysis.plain import deepest
from pgdyno.analysis.profile_facts import ProfileFacts
from pgdyno.analysis.snapshots import shapes_of
from pgdyno.analysis.stages import over_cycles
from pgdyno.analysis.stopping import still_needed
from pgdyno.analysis.stored import Stored
from pgdyno.model.errors import PlanError
from pgdyno.model.manifest import HostManifest
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.run import RunInfo, TrialRecord, TrialResult, TrialState
from pgdyno.model.settings import OriginKind
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.describe import build_text, size_text, workload_values
from pgdyno.plan.settings.checkpoints import protocol_text
from pgdyno.stats.between_runs import RunMean, run_mean
from pgdyno.stats.change_points import change_points

GROUPS: Mapping[Group, str] = {
    "load": "load", "measurement": "how it was measured", "host": "host", "build": "PostgreSQL",
    "settings": "settings", "pgdyno": "pgdyno", "plans": "plan of a statement",
}  # fmt: skip
"""What sides may differ in, and what people call it."""

UNSET = "not set"  # by whoever configured the server
_WAL = ("records", "buffers_full", "writes", "syncs")  # bytes and images are costs already


@dataclass(frozen=True, slots=True)
class KnownRun:
    """A stage of a run, as far as it tells of the noise between sessions."""

    run: str  # ident: a copy of a file is no further run
    stage: str
    started_ns: int
    host: tuple[str, ...]
    load: tuple[str, ...]  # and how it was measured
    thing: tuple[str, ...]  # build and settings
    mean: RunMean


def side_of(stored: Stored, facts: Facts, stage: str, label: str) -> Side:
    """A stage of a run with all that others may differ from it in.

    Args:
        stored: The run file.
        facts: Its facts.
        stage: The stage's name.
        label: What it is called beside others.

    Raises:
        PlanError: There is no such stage.
    """
    run = stored.run
    names = [one.name for one in facts.stages]
    if stage not in names:
        raise PlanError(f"no stage of {run.path} is called {stage!r}, there are {listed(names)}")
    found = next(one for one in facts.stages if one.name == stage)
    info, trials = run.info(), run.trials()
    plan = plan_in(info)
    mine = [one for one in trials if one.stage == stage]
    results = [one.result for one in mine if one.result and one.state is TrialState.FINISHED]
    sessions = next((one for one in facts.sessions if one.stage == stage), None)
    return Side(
        label=label, run=info.ident, started_ns=info.started_ns, plan=plan.name, stage=stage,
        metric=plan.stage(stage).workload.headline, rung=found.rung, rounds=len(found.rounds),
        doubts=tuple(one.text for one in facts.answer.against(stage)),
        failed=sum(one.counts_against_its_stage for one in mine),
        requests_failed=sum(kind.window.failed for one in results for kind in one.kinds),
        margin=facts.margin, confidence=facts.confidence,
        throughput=found.throughput, tpm_total=found.tpm_total,
        orders_ended=_orders_ended(results), latency=found.latency, tail=deepest(found),
        per_transaction=found.per_transaction, wal=_wal(results),
        wal_kinds={part.name: part.bytes for one in facts.wal if one.stage == stage
                   for part in one.kinds},
        waits=sessions.by.get("class") if sessions else None,
        functions=_functions(facts.profiles, stage),
        cycles=next((one for one in facts.cycles if one.stage == stage), None),
        aspects={**aspects(info, plan, plan.stage(stage), trials), "plans": _plans(stored, mine)},
        conditions=told_of(plan, plan.stage(stage)),
    )  # fmt: skip


def known_runs(stored: Stored) -> tuple[KnownRun, ...]:
    """Each stage of a run that has a mean; twins of it are no further run.

    Args:
        stored: The run file.

    Raises:
        StoreError: The file cannot be read.
        PlanError: No plan was run.
    """
    run = stored.run
    info = run.info()
    plan = plan_in(info)
    trials = still_needed(plan, info.host, run.trials(), run.replaced())
    means = _means(stored, plan, trials)
    found = []
    for stage in plan.stages:
        if stage.twin_of is None and stage.name in means:
            of = aspects(info, plan, stage, trials)
            found.append(
                KnownRun(
                    info.ident, stage.name, info.started_ns, same_host(of), same_load(of),
                    (*_lines(of["build"]), *_lines(stage.values | _beside_settings(stage))),
                    means[stage.name],
                )
            )  # fmt: skip
    return tuple(found)


def _means(stored: Stored, plan: Plan, trials: Sequence[TrialRecord]) -> dict[str, RunMean]:
    finished = [one for one in trials if one.state is TrialState.FINISHED]
    cycles = None
    if plan.protocol.checkpoints == "anchors":
        cycles = plan_cycles(plan, trials, stored)
    found = {}
    for stage in plan.stages:
        mine = [one for one in finished if one.stage == stage.name]
        values = (
            over_cycles(cycles, mine)
            if cycles is not None
            else tuple(one.result.throughput for one in mine if one.result)
        )
        if values and min(values) > 0:
            found[stage.name] = run_mean(values)
    return found


def levels(runs: Sequence[KnownRun]) -> list[list[KnownRun]]:
    """Runs of one thing in the order of time, apart where their level changes.

    What a change of level did is no noise: it would hide all that comes after it. A copy of a run's
    file is no further run: of two, the one that was resumed afterwards tells more.
    """
    once = {one.run: one for one in sorted(reversed(runs), key=lambda one: one.mean.rounds)}
    ordered = sorted(once.values(), key=lambda one: (one.started_ns, one.run))
    places = [one.place for one in change_points([one.mean.log_mean for one in ordered])]
    return [ordered[a:b] for a, b in pairwise([0, *places, len(ordered)])]


def mean_of(side: Side) -> RunMean | None:
    """What its rounds say together; None: nothing that can be compared."""
    if side.throughput is None or min(side.throughput.rounds) <= 0:
        return None
    return run_mean(side.throughput.rounds)


def aspects(
    info: RunInfo, plan: Plan, stage: Stage, trials: Sequence[TrialRecord]
) -> dict[Group, dict[str, str]]:
    """All that a stage of a run may differ from others in, as texts by name."""
    protocol, load = plan.protocol, stage.workload
    drivers = {one.result.engine for one in trials if one.result and one.stage == stage.name}
    build = words.flat(asdict(info.build)) | _further_versions(stage, trials)
    if stage.build is not None:
        build = {"version": stage.build.version, "build": build_text(stage.build)}
    values = workload_values(load)
    values.pop("threads", None)
    return {
        "load": {
            "workload": load.kind, "size": size_text(load),
            "blocks of the warehouses": str(load.blocks), **values,
        },
        "measurement": {
            "warm-up": f"{protocol.warmup_s:g} s", "window": f"{protocol.window_s:g} s",
            "checkpoints": protocol_text(protocol) or "windows do not follow them",
            "prewarm": "yes" if protocol.prewarm else "no",
            "CHECKPOINT before the load": "yes" if protocol.checkpoint_before else "no",
            "transport": plan.target.transport, "engine": listed(sorted(drivers)),
            "load from": listed(protocol.fleet.hosts) if protocol.fleet else "one process",
            "servers": str(max(1, len(plan.target.servers))),
            "standby of ours beside the server": "yes" if stage.guard or stage.standby else "no",
        },
        "host": _host(info.host),
        "build": build,
        "settings": _settings(stage, trials),
        "pgdyno": {
            "version": info.pgdyno, "driver": info.host.driver or "", **_hosts(stage, trials),
        },
    }  # fmt: skip


def _hosts(stage: Stage, trials: Sequence[TrialRecord]) -> dict[str, str]:
    """What the hosts of the load are, and trials that are left out since some of them were lost."""
    mine = [one for one in trials if one.stage == stage.name]
    machines = {
        host.name: machine_text(host.machine)
        for trial in mine if trial.result and trial.result.fleet
        for host in trial.result.fleet.hosts
    }  # fmt: skip
    found = {f"host {name}": text for name, text in sorted(machines.items())}
    degraded = sum(one.state is TrialState.DEGRADED for one in mine)
    if degraded:
        found["left out, driven without lost hosts"] = plural(degraded, "trial")
    return found


def _host(host: HostManifest) -> dict[str, str]:
    lines = words.flat(asdict(host))
    for name in ("cpu_mhz", "driver", "huge_pages_free"):  # of a moment, or told elsewhere
        lines.pop(name, None)
    if host.memory_bytes is not None:  # kernels keep different amounts for themselves
        lines["memory"] = bytes_text(round(host.memory_bytes / 2**28) * 2**28)
    return lines


def same_host(of: Mapping[Group, Mapping[str, str]]) -> tuple[str, ...]:
    """What has to be the same of two machines, or of one before and after an update."""
    names = ("cpu_model", "cpus", "memory", "virtualisation", "file_system.type")
    return tuple(of["host"].get(name, "") for name in names)


def same_load(of: Mapping[Group, Mapping[str, str]]) -> tuple[str, ...]:
    """What was asked of the server, and how it was measured."""
    return (*_lines(of["load"]), *_lines(of["measurement"]))


def _lines(lines: Mapping[str, str]) -> list[str]:
    return [f"{name}={value}" for name, value in sorted(lines.items())]


def _first_result(stage: Stage, trials: Sequence[TrialRecord]) -> TrialResult | None:
    mine = (one.result for one in trials if one.stage == stage.name)
    return next((one for one in mine if one is not None), None)


def _further_versions(stage: Stage, trials: Sequence[TrialRecord]) -> dict[str, str]:
    """What further servers call themselves, by their place: other runs' have other names."""
    result = _first_result(stage, trials)
    servers = result.servers[1:] if result is not None else ()
    return {f"server {number}": one.server for number, one in enumerate(servers, start=2)}


def _settings(stage: Stage, trials: Sequence[TrialRecord]) -> dict[str, str]:
    """As server and machine had them; what pgdyno needs to run a cluster is none of the stage."""
    result = _first_result(stage, trials)
    if result is None:
        return stage.values | _beside_settings(stage)
    ours = {one.name for one in result.settings if one.origin == OriginKind.TARGET}
    read = effective_of(stage.name, trials)
    kept = {name: value for name, value in read.items() if name not in ours}
    of_machine = {one.name: one.value for one in stage.host}
    return _on_servers(kept, result) | of_machine | _beside_settings(stage)


def _on_servers(first: Mapping[str, str], result: TrialResult) -> dict[str, str]:
    """Settings of the first server with what others have otherwise: `4MB; 8MB on server 2`.

    What a stage sets is the same on all of them.
    """
    found = dict(first)
    configured = {one.name for one in result.settings if one.origin == OriginKind.SERVER}
    for number, server in enumerate(result.servers[1:], start=2):
        for name in sorted({*configured, *server.configured}):
            value = server.configured.get(name, UNSET)
            if value != first.get(name, UNSET):
                found[name] = f"{found.get(name, UNSET)}; {value} on server {number}"
    return found


def _beside_settings(stage: Stage) -> dict[str, str]:
    """No setting of the server, and as much the stage's choice as one."""
    found = {"unlogged tables": "yes"} if stage.unlogged else {}
    found |= {"a disk that lies": "yes"} if stage.lying_disk else {}
    found |= {"commits wait for a standby": "yes"} if stage.synchronous else {}
    return found | ({"pooler": stage.pooler.shown} if stage.pooler else {})


def _orders_ended(results: Sequence[TrialResult]) -> Spread | None:
    """New-Orders a minute of the windows, however they ended; None: another workload."""
    kinds = [(one, kind) for one in results for kind in one.kinds if kind.kind == "new_order"]
    return Spread.of(tuple(
        60 * (kind.window.ended + kind.window.failed) / one.window_s
        for one, kind in kinds
    ))  # fmt: skip


def _wal(results: Sequence[TrialResult]) -> dict[str, float]:
    """Counters of WAL that all rounds have, by transaction."""
    found = {}
    for name in _WAL:
        values = [
            one.deltas[f"wal.{name}"] / count
            for one in results
            if f"wal.{name}" in one.deltas and (count := transactions(one))
        ]
        if values and len(values) == len(results):
            found[name] = float(median(values))
    return found


def _functions(profiles: ProfileFacts | None, stage: str) -> dict[str, float] | None:
    """CPU µs of a transaction by `role: function (module)`; those that weigh in any stage."""
    stages = [one.stage for one in profiles.stages] if profiles is not None else []
    if profiles is None or stage not in stages:
        return None
    place = stages.index(stage)
    return {f"{one.role}: {one.name} ({one.module})": one.shares[place].own
            for one in profiles.heavy if place < len(one.shares)}  # fmt: skip


def _plans(stored: Stored, trials: Sequence[TrialRecord]) -> dict[str, str]:
    """Of the workload's statements; empty: they were not looked at."""
    finished = [one for one in trials if one.state is TrialState.FINISHED]
    if not finished:
        return {}
    kept = {one.number: stored.snapshots(one.number) for one in finished}
    return shapes_of(finished[0].stage, finished, kept)
