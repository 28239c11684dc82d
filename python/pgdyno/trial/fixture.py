"""The loaded databases that the stages of a plan start from: found, or loaded and kept."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.loader.consistency import check, require
from pgdyno.loader.copy import How, estimate, load
from pgdyno.loader.room import require_room, room_text
from pgdyno.loader.setup import run_setup
from pgdyno.loader.unlogged import make_unlogged
from pgdyno.model.connection import Connection
from pgdyno.model.loading import LoadReport
from pgdyno.model.plan import Plan, Stage, Workload
from pgdyno.model.progress import Noted
from pgdyno.model.run import Fixture
from pgdyno.model.wording import listed
from pgdyno.plan.resolve.fixture import fixture_ident, fixture_shape
from pgdyno.plan.settings.fleet import loading_fleet
from pgdyno.target.interface import Target, ending, explained, on_server, own_work_mem
from pgdyno.target.server_host import server_host_of
from pgdyno.target.servers_target import ServersTarget
from pgdyno.trial.progress import Listener, Phases
from pgdyno.trial.shared_loading import estimate_from_hosts, load_from_hosts
from pgdyno.workload.describe import describe


def make_fixtures(plan: Plan, target: Target, listener: Listener) -> dict[str, Fixture]:
    """The loaded database of each stage.

    Stages share one unless their builds store otherwise, or some have unlogged tables.

    Raises:
        PgdynoError: Loading failed, or what was loaded is not consistent.
    """
    of_kind: dict[tuple[str | None, bool], Fixture] = {}
    made: dict[str, Fixture] = {}
    for stage in plan.stages:
        if (kind := _kind(stage)) not in of_kind:
            names = target.names if isinstance(target, ServersTarget) else [""]
            parts = []
            for server, (name, one) in enumerate(zip(names, target.each, strict=True)):
                with on_server(name):
                    parts.append(make_fixture(plan, one, listener, stage, server))
            fixture = target.joined(parts) if isinstance(target, ServersTarget) else parts[0]
            # What was loaded for a build before this one is not reused from an earlier run.
            of_kind[kind] = made.setdefault(fixture.ident, fixture)
    return {stage.name: of_kind[_kind(stage)] for stage in plan.stages}


def _kind(stage: Stage) -> tuple[str | None, bool]:
    """What stages of one plan share that start from one loaded database."""
    return build_of(stage), stage.unlogged


def build_of(stage: Stage) -> str | None:
    """The build that a stage runs on; None: the target's own installation."""
    return stage.build.ident if stage.build else None


def _load(plan: Plan, connection: Connection, workload: Workload, listener: Listener) -> LoadReport:
    """Fill the tables, from all hosts that drive: whoever looks on is told what each of them did.

    Memory of a server of ours is shared out; another one gives what it has set, and has room: what
    the load takes there is told as well.

    Raises:
        TargetError: A file system there has less free space than the load needs.
        DriveError: The server or a host failed.
        Interrupted: Ctrl-C.
    """
    host, how, fleet = server_host_of(connection), How(kept=False), plan.protocol.fleet
    if fleet is not None:
        fleet, sessions = loading_fleet(fleet, plan.workload.of_part(plan.workload.connections))
        how = replace(how, connections=sessions)
    if plan.target.kind != "running":
        how = replace(how, server_memory_bytes=host.memory_bytes)
    else:
        needed = (
            estimate(connection, workload, how)
            if fleet is None
            else estimate_from_hosts(connection, workload, how)
        )
        listener(Noted(room_text(needed, host)))
        require_room(needed, host)
    if fleet is None:
        return load(connection, workload, how, progress=listener)
    report, parts = load_from_hosts(fleet, connection, workload, how, listener)
    listener(Noted(f"Tables were filled from {listed([one.shown for one in parts])}."))
    return report


def make_fixture(
    plan: Plan, target: Target, listener: Listener, stage: Stage, server: int = 0
) -> Fixture:
    """Find the loaded database that a stage starts from, or load it, check it and keep it.

    Args:
        plan: Its workload is loaded.
        target: The server, or one of several.
        listener: Told how it goes.
        stage: Its build loads.
        server: Which of the plan's servers it is, from 0.

    Raises:
        PgdynoError: Loading failed, or what was loaded is not consistent.
    """
    whole, build = plan.workload, build_of(stage)
    if plan.target.servers:
        whole = whole.held_by(server)
    workload = whole.to_load
    described = describe(workload) if workload else None
    version = described.version if described else None
    facts = target.facts_of(build)
    shape = fixture_shape(plan.target, whole, facts, version, unlogged=stage.unlogged)
    ident = fixture_ident(shape)
    if found := target.find_fixture(ident):
        return found
    phases = Phases(listener, None)
    with ending(target.drop_half_fixture), explained(target):
        with phases.phase("prepare"):
            connection = target.begin_fixture(ident, build)
        loaded = None
        if workload is not None:
            with phases.phase("load"):
                loaded = _load(plan, connection, workload, listener)
                if stage.unlogged and described is not None:
                    make_unlogged(connection, described.tables)
        with phases.phase("check"):
            conditions = (
                check(connection, described.conditions, work_mem=own_work_mem(target))
                if described
                else ()
            )
            require(conditions)
        if (setup := plan.workload.data.setup) is not None:
            with phases.phase("setup"):
                run_setup(connection, setup)
        with phases.phase("keep"):
            fixture = Fixture(ident, shape, 0, loaded, conditions, "", reused=False)
            return target.keep_fixture(fixture, whole.databases)
