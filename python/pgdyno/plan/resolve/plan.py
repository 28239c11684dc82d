"""From a draft, a server and a host to a plan that can be carried out, or to what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pgdyno.model.fleet import Fleet
from pgdyno.model.plan import Plan, Protocol, Stage, Target, Trial, Workload
from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.model.shared_storage import Lies, on_one_storage
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import listed, plural
from pgdyno.plan.estimate.needs import (
    DEFAULT_COSTS,
    ONE_TO_LOAD,
    Costs,
    Fixtures,
    Need,
    Room,
    disk_need,
    estimate,
    fitting_wal_bytes,
    memory_need,
    rooms,
    shared,
)
from pgdyno.plan.resolve.builds import NO_BUILDS, Builds
from pgdyno.plan.resolve.earlier_figures import earlier_complaints, earlier_of
from pgdyno.plan.resolve.fixture import trial_idents
from pgdyno.plan.resolve.order import balanced_order
from pgdyno.plan.resolve.stages import Resolved, StageServer, resolve_stages
from pgdyno.plan.schema.complaint import Complaint, refuse
from pgdyno.plan.schema.read import PlanDraft
from pgdyno.plan.settings.checkpoints import (
    cycle_complaints,
    cycle_notes,
    driven_s,
    expected_cycle_s,
    following,
)
from pgdyno.plan.settings.fleet import fleet_complaints
from pgdyno.plan.settings.initdb import after_initdb, initdb_complaints
from pgdyno.plan.settings.stopping import stop_complaints
from pgdyno.plan.settings.stronger import overruled

MAJORS = range(12, 19)
"""Major versions of PostgreSQL that can be targets."""
TRIALS_MAX = 10_000
"""Of a plan; at the shortest they take half a day."""
_LEAST_WAL_MB = 32  # two segments, less no server takes


def resolve(
    draft: PlanDraft,
    server: ServerFacts,
    host: HostFacts,
    fixtures: Fixtures = ONE_TO_LOAD,
    costs: Costs = DEFAULT_COSTS,
    builds: Builds = NO_BUILDS,
) -> Plan:
    """Resolve a draft: settings with their origins, rungs, trials in order, needs.

    Args:
        draft: From `read_plan`.
        server: Version and settings of the target.
        host: The machine of the target; of a running server nothing is known but what it says of
            itself, so that its memory and disk are not checked.
        fixtures: Sizes of the loaded databases that the stages need.
        costs: Assumptions of the estimates.
        builds: What the stages run on, if any names a build.

    Raises:
        PlanError: The plan cannot be carried out there; everything that is wrong is told.
    """
    document = draft.document
    workload, protocol, target = resolve_workload(draft), _protocol(draft), resolve_target(draft)
    complaints = _target_complaints(target, server, protocol)
    servers = _servers(draft, server, builds)
    for major in dict.fromkeys(one.facts.major for one in servers):
        complaints += initdb_complaints(target.initdb, major)
    resolved = resolve_stages(draft, servers, host)
    complaints += [*resolved.complaints, *_unable(resolved, protocol, target, server)]
    complaints += earlier_complaints(
        document, [draft.driven(client.table) for client in draft.clients]
    )
    notes = [*_unjudged(draft, resolved, protocol), *document.notes, *_left_out(draft)]
    notes += resolved.notes
    memory, disk = {}, {}
    for stage, config in zip(resolved.stages, resolved.configs, strict=True):
        memory[stage.name] = memory_need(config, stage.workload, host, costs)
        disk[stage.name] = disk_need(config, workload, protocol, host, fixtures, costs)
    if target.kind == "running":
        notes += _not_ours(server)
    else:
        complaints += _too_much(memory, host.memory_bytes, "memory", "the host has")
        found = rooms(resolved.stages, resolved.configs, workload, protocol, host, fixtures, costs)
        complaints += _too_little_room(found[0])
        notes += _storage_notes(resolved.stages, host)
        notes += _tight(found, _hungriest(memory)[1], host.memory_bytes)
    notes += _alone(resolved)
    complaints += [*_too_many(resolved, protocol), *stop_complaints(protocol, resolved.stages)]
    refuse(draft.source, complaints)
    hungriest = _hungriest(memory)[1], _hungriest(disk)[1]
    cycles = _follow(resolved, protocol, host)
    trials = _trials(resolved, target, protocol)
    driven = [_driven_s(protocol, cycles, trial) for trial in trials]
    return Plan(
        name=document.name, question=document.question, source=draft.source, text=draft.text,
        target=target, workload=workload, protocol=protocol,
        stages=tuple(resolved.stages),
        trials=trials,
        estimate=estimate(workload, protocol, driven, hungriest, fixtures, costs),
        quick=draft.quick,
        overrides=draft.overrides,
        aa=draft.aa,
        folders=draft.folders,
        notes=tuple(dict.fromkeys(notes)),
        reference=document.reference,
        earlier=earlier_of(document),
        origins=dict(draft.origins),
    )  # fmt: skip


def _driven_s(protocol: Protocol, cycles: Mapping[str, float], trial: Trial) -> float:
    """Seconds in which a trial's load is driven, with those of its profile."""
    return driven_s(protocol, cycles[trial.stage], trial.round) + protocol.profiling_s


def _follow(resolved: Resolved, protocol: Protocol, host: HostFacts) -> dict[str, float]:
    """Decide how each stage follows checkpoints, by the length of its cycles, which is returned."""
    cycles = {
        stage.name: expected_cycle_s(config, host.cpus)
        for stage, config in zip(resolved.stages, resolved.configs, strict=True)
    }
    resolved.stages[:] = [
        replace(stage, checkpoints=following(protocol, cycles[stage.name]))
        for stage in resolved.stages
    ]
    return cycles


def _target_complaints(target: Target, server: ServerFacts, protocol: Protocol) -> list[Complaint]:
    complaints = list(_unlike(server))
    if server.major not in MAJORS:
        text = f"is {server.version}; allowed: PostgreSQL {MAJORS[0]} to {MAJORS[-1]}"
        complaints.append(Complaint("target", text))
    if protocol.crash_recovery and target.kind == "running":
        text = "is true, but pgdyno does not kill a server that is not its own"
        complaints.append(Complaint("protocol.crash_recovery", text))
    if protocol.crash_recovery and protocol.profile_s:
        text = (
            f"is {protocol.profile_s:g}, but the profile's load would be recovered as well, and the"
            " recovery's time be that of both; allowed with crash_recovery: 0"
        )
        complaints.append(Complaint("protocol.profile_s", text))
    return complaints


def _unlike(server: ServerFacts) -> Iterator[Complaint]:
    """Servers of other versions than the first: what a stage sets is resolved for one."""
    for other in server.others:
        if other.major != server.major:
            text = (
                f"are of several versions, {server.name} of {server.version} and {other.name} of"
                f" {other.version}; allowed: one major version"
            )
            yield Complaint("target.servers", text)


def _not_ours(server: ServerFacts) -> Iterator[str]:
    yield (
        "the memory of a running server is not checked; its disk is checked before loading, where"
        " pgdyno can see it"
    )
    for one in (server, *server.others):
        sessions = one.about.get("sessions of others", "0")
        if sessions != "0":
            yield (
                f"the server {one.name}{' ' * bool(one.name)}is in use, sessions of others:"
                f" {sessions}; loading and driving take CPU, disk and WAL from them, and what they"
                " do is in the figures"
            )


def _unjudged(draft: PlanDraft, resolved: Resolved, protocol: Protocol) -> Iterator[str]:
    """What may make all of it useless, which is said first."""
    by_quick = draft.ignores_cycles
    return cycle_notes(protocol, resolved.stages, resolved.configs, shortened=by_quick)


def _alone(resolved: Resolved) -> list[str]:
    if len(resolved.stages) > 1:
        return []
    return ["one stage alone is compared with nothing; --aa would measure the noise"]


def _left_out(draft: PlanDraft) -> list[str]:
    found = []
    for option in dict.fromkeys(draft.skipped.values()):
        names = [name for name, other in draft.skipped.items() if other == option]
        one = len(names) == 1
        who, verb, them = ("stage", "is", "it") if one else ("stages", "are", "them")
        found.append(
            f"{who} {listed(names)} {verb} left out (skip); what brings {them} in is {option}"
        )
    return found


def _servers(draft: PlanDraft, own: ServerFacts, builds: Builds) -> list[StageServer]:
    """What each stage runs on, with the defaults that initdb leaves behind."""
    stages, initdb = draft.document.stage, draft.document.target.initdb
    assert builds.of_stages or not any(stage.build for stage in stages)
    return [
        StageServer(build, after_initdb(builds.server(build, own), initdb))
        for build in builds.of_stages or (None,) * len(stages)
    ]


def resolve_target(draft: PlanDraft) -> Target:
    """The target alone, which must be known before the server can be asked."""
    table = draft.document.target
    return Target(
        kind=table.kind,
        bindir=table.bindir,
        conninfo=table.conninfo,
        initdb=table.initdb,
        transport=table.transport,
        servers=table.servers,
        share=table.share,
        replica=table.replica,
        replicas=table.replicas,
    )


def resolve_workload(draft: PlanDraft) -> Workload:
    """The workload of the plan as a whole: what is loaded."""
    return draft.driven(draft.document.workload)


def resolve_fleet(draft: PlanDraft) -> Fleet | None:
    """The hosts of the load; None: one process of this host."""
    table = draft.document.fleet
    if table is None:
        return None
    return Fleet(table.hosts, table.python, table.ssh_config, degraded=table.degraded)


def _unable(
    resolved: Resolved, protocol: Protocol, target: Target, server: ServerFacts
) -> list[Complaint]:
    """Stages that cannot do what the protocol or they themselves ask for."""
    followed = cycle_complaints(protocol, resolved.stages)
    driven = fleet_complaints(target, protocol, resolved.stages)
    in_vain = [
        Complaint(f"stage {stage}", why)
        for one in (server, *server.others)
        for stage, _, why in overruled(one, resolved.stages)
    ]
    return [*_gone_sessions(resolved, protocol), *followed, *driven, *in_vain]


def _gone_sessions(resolved: Resolved, protocol: Protocol) -> list[Complaint]:
    """Stages that end with their first lost connection, where a plan wants them to survive."""
    if not protocol.survive:
        return []
    text = "is true, but pgbench does not connect again; allowed: engine pgdyno"
    return [
        Complaint(f"stage {stage.name}: protocol.survive", text)
        for stage in resolved.stages
        if stage.workload.engine == "pgbench"
    ]


def _protocol(draft: PlanDraft) -> Protocol:
    table = draft.document.protocol
    return Protocol(
        rounds=table.rounds,
        warmup_s=float(table.warmup_s),
        window_s=float(table.window_s),
        drain_s=float(table.drain_s),
        prewarm=table.prewarm,
        margin=float(table.margin),
        confidence=float(table.confidence),
        lowest_rung=table.lowest_rung,
        survive=table.survive,
        crash_recovery=table.crash_recovery,
        checked_rounds=table.checked_rounds,
        checkpoints=table.checkpoints,
        cycles=table.cycles,
        anchors=table.anchors,
        stop=table.stop,
        whole_rounds=draft.whole_rounds,
        checkpoint_before=table.checkpoint_before,
        telemetry=table.telemetry,
        reconnect_s=float(table.reconnect_s),
        profile_s=float(table.profile_s),
        fleet=resolve_fleet(draft),
    )


def _too_many(resolved: Resolved, protocol: Protocol) -> list[Complaint]:
    count = len(resolved.stages) * protocol.rounds
    if count <= TRIALS_MAX:
        return []
    text = (
        f"{protocol.rounds} of {plural(len(resolved.stages), 'stage')} are {plural(count, 'trial')}"
    )
    return [Complaint("protocol.rounds", f"{text}; allowed: {TRIALS_MAX}")]


def _too_much(needs: dict[str, Need], there: int, what: str, has: str) -> list[Complaint]:
    name, need = _hungriest(needs)
    if need.total_bytes <= there:
        return []
    text = (
        f"needs {bytes_text(need.total_bytes)} of {what}, {has} {bytes_text(there)}: {need.text()}"
    )
    return [Complaint(f"stage {name}", text)]


def _too_little_room(own: Room) -> list[Complaint]:
    """Whether pgdyno's own folder holds what lies there."""
    if own.free_bytes is None or own.need.total_bytes <= own.free_bytes:
        return []
    text = (
        f"needs {bytes_text(own.need.total_bytes)} of disk, {own.path} has free"
        f" {bytes_text(own.free_bytes)}: {own.need.text()}"
    )
    return [Complaint(f"stage {own.stage}" if own.stage else "fixtures", text)]


def _storage_notes(stages: Sequence[Stage], host: HostFacts) -> Iterator[str]:
    """Folders of stages that are one storage: who compares them has to know beforehand."""
    found = [
        Lies(place.path, place.device_number, place.disks)
        for folder in dict.fromkeys(stage.folder for stage in stages)
        if folder and (place := host.place(folder))
    ]
    if any(stage.folder is None for stage in stages):
        found.insert(0, Lies(host.data_path, host.data_device_number, host.data_disks))
    return on_one_storage(found)


def _tight(found: Sequence[Room], sessions: Need, memory_bytes: int) -> Iterator[str]:
    """Folders of stages that may be too small; data that do not fit are refused elsewhere.

    WAL seldom takes all that max_wal_size allows within a trial, so this is no refusal. How much
    SQL of the plan's own writes is not known, so of it all of that is reckoned with.
    """
    for one in found[1:]:
        if one.free_bytes is not None and one.need.total_bytes > one.free_bytes:
            yield (
                f"folder {one.path} has {bytes_text(one.free_bytes)} free,"
                f" {'stage' if len(one.tight) == 1 else 'stages'} {listed(one.tight)} may take up"
                f" to {bytes_text(one.need.total_bytes)}: {one.need.text()}; it is not refused,"
                " since WAL seldom takes all that max_wal_size allows, but a trial that fills the"
                f" disk fails; {_remedy(one)}"
            )
    for together in shared(found):
        need, free_bytes = sum(one.need.total_bytes for one in together), together[0].free_bytes
        if free_bytes is not None and need > free_bytes:
            yield (
                f"{listed([one.path for one in together])} lie on one file system, which has"
                f" {bytes_text(free_bytes)} free; together they may take {bytes_text(need)}"
            )
    yield from _tight_in_memory(found, sessions, memory_bytes)


def _remedy(room: Room) -> str:
    """What has the stages of a folder fit into it."""
    fits_mb = fitting_wal_bytes(room) >> 20
    if fits_mb < _LEAST_WAL_MB:
        return "make room there, or name another folder"
    return f"max_wal_size = {fits_mb}MB in all stages that are compared would fit, or make room"


def _tight_in_memory(found: Sequence[Room], sessions: Need, there: int) -> Iterator[str]:
    """Folders in memory that may not fit beside what the server takes of it; no refusal, as above.

    Args:
        found: The rooms of the plan.
        sessions: Memory of the hungriest stage, its data elsewhere.
        there: All memory of the host.
    """
    for one in found:
        need = sessions.total_bytes + one.need.total_bytes
        if one.in_memory and need > there:
            yield (
                f"folder {one.path} is memory: with it stage {one.stage} may take"
                f" {bytes_text(need)}, the host has {bytes_text(there)}; a smaller max_wal_size or"
                " shared_buffers leaves room"
            )


def _hungriest(needs: dict[str, Need]) -> tuple[str, Need]:
    return max(needs.items(), key=lambda item: item[1].total_bytes)


def _trials(
    resolved: Resolved,
    target: Target,
    protocol: Protocol,
) -> tuple[Trial, ...]:
    stages = resolved.stages
    result: list[Trial] = []
    idents = [
        trial_idents(target, config.server, protocol, stage)
        for stage, config in zip(stages, resolved.configs, strict=True)
    ]
    for round_number, row in enumerate(balanced_order(len(stages), protocol.rounds), start=1):
        for index in row:
            ident = idents[index][round_number - 1]
            result.append(Trial(len(result) + 1, round_number, stages[index].name, ident))
    return tuple(result)
