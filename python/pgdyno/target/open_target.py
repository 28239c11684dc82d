"""Opens a plan's target: finds the installation or the running server, and asks what it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.model.build import Build
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.plan import Plan, Stage
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.plan.resolve.fixture import fixture_ident
from pgdyno.plan.schema.complaint import Complaint, refuse
from pgdyno.preload import require_compiler
from pgdyno.shell import OsUser, postgres_user
from pgdyno.target.binaries import Binaries, embedded_bindir, find_binaries
from pgdyno.target.cluster import server_settings
from pgdyno.target.home import home
from pgdyno.target.host_facts import host_facts
from pgdyno.target.interface import Target
from pgdyno.target.kept_builds import build_bindir, kept_builds
from pgdyno.target.own_target import Installed, OwnTarget, kept_fixture
from pgdyno.target.pooler import pooler_problems
from pgdyno.target.rehearse import folder_problems
from pgdyno.target.replica import reach_replica, role_there
from pgdyno.target.running_target import TRIAL, RunningTarget, ask_server
from pgdyno.target.server_owner import OWNER
from pgdyno.target.servers_target import ServersTarget, ask_servers


def data_folder() -> Path:
    """Where clusters and fixtures lie."""
    return home()


def local_facts(folders: Iterable[str] = ()) -> HostFacts:
    """This host, with the folder of clusters, and those that stages name."""
    return host_facts(home(), folders)


def server_facts(plan: TargetPlan) -> ServerFacts:
    """Version and settings of a plan's server. Nothing stays of what it takes to learn them.

    Raises:
        TargetError: It is not there.
    """
    if plan.kind == "running":
        if plan.servers:
            return ask_servers(plan.servers, knocks=True)
        server = ask_server(_conninfo(plan), knocks=True)
        if plan.replica is None:
            return server.facts
        replica = reach_replica(plan.replica, server.connection)
        return replace(server.facts, replica=role_there(replica, (OWNER, TRIAL)))
    user = postgres_user()
    return server_settings(find_binaries(plan, user), user)


def builds_there() -> tuple[Build, ...]:
    """The builds that stages may name."""
    return kept_builds(home())


def build_facts(build: Build) -> ServerFacts:
    """Version and settings of a build, as `server_facts`."""
    user = postgres_user()
    return server_settings(_binaries(build, user), user)


def require_folders(plan: Plan, data_bytes: int) -> None:
    """Look whether the folders that stages name can hold their clusters; nothing is changed.

    Raises:
        PlanError: Naming each that cannot, and why.
    """
    user = postgres_user()
    hint = f"Name a folder that exists, that user {user.name} can enter, and that has the room."
    refuse(plan.source, [
        # Nobody wrote the stages that `--folder` makes.
        Complaint("--folder" if stage.folder in plan.folders else f"stage {stage.name}", text, hint)
        for stage, text in folder_problems(plan.stages, user, data_bytes)
    ])  # fmt: skip


def require_poolers(plan: Plan) -> None:
    """Look whether the pooler that stages ask for is installed.

    Raises:
        PlanError: Naming each stage that asks for one.
    """
    problems = pooler_problems(plan.stages, postgres_user())
    refuse(plan.source, [Complaint(f"stage {stage}", text) for stage, text in problems])


def require_compilers(plan: Plan) -> None:
    """Look whether the library can be compiled that makes the disk of a stage lie.

    Raises:
        PlanError: Naming each stage that asks for it.
    """
    asking = [one.name for one in plan.stages if one.lying_disk]
    try:
        if asking:
            require_compiler()
    except TargetError as error:
        text = f"lying_disk = true, and {error.fact}"
        refuse(plan.source, [Complaint(f"stage {one}", text) for one in asking])


def require_rehearsed(plan: Plan, target: Target, stages: Sequence[Stage]) -> None:
    """Try the settings of stages of a plan, before a run file is begun or anything is loaded.

    Raises:
        PlanError: Naming each stage that the server refuses, and why.
    """
    problems = target.rehearse(stages)
    refuse(plan.source, [Complaint(f"stage {stage}", text) for stage, text in problems])


def fixture_bytes(plan: TargetPlan, shape: FixtureShape) -> int | None:
    """Size of a fixture of a plan if it is there already; None if it must be loaded."""
    found = None if plan.kind == "running" else kept_fixture(home(), fixture_ident(shape))
    return found.data_bytes if found else None


def open_target(
    plan: TargetPlan,
    facts: ServerFacts,
    host: HostFacts,
    builds: Mapping[str, ServerFacts],
    folders: Sequence[str] = (),
    *,
    prewarm: bool = True,
) -> Target:
    """The server under test, ready for its fixture. Close it in any case.

    Args:
        plan: The plan's target.
        facts: Version and settings of its own installation.
        host: The machine.
        builds: Version and settings of the builds that stages name, by ident.
        folders: Those that stages name.
        prewarm: Whether trials read their data into memory first.

    Raises:
        TargetError: It is not there, or another pgdyno uses the server or one of its folders.
    """
    if plan.kind == "running":
        if plan.servers:
            return ServersTarget(plan.servers, prewarm=prewarm)
        return RunningTarget(_conninfo(plan), prewarm=prewarm, replica=plan.replica)
    user = postgres_user()
    binaries = find_binaries(plan, user)
    named = {
        build.ident: Installed(_binaries(build, user), builds[build.ident])
        for build in builds_there()
        if build.ident in builds
    }
    return OwnTarget(plan, binaries, facts, user, home(), host.memory_bytes, named, folders)


def pgbench_program(bindir: Path | None) -> Path:
    """Where pgbench is in an installation; None: in the embedded one, which drives all servers.

    Raises:
        TargetError: It has none.
    """
    folder = bindir or embedded_bindir()
    program = folder.absolute() / "pgbench"
    if not program.is_file():
        raise TargetError(
            f"folder {folder} holds no pgbench, which is to drive",
            hint="Install it there, or remove `engine`: our own driver needs none.",
        )
    return program


def _binaries(build: Build, user: OsUser) -> Binaries:
    bindir = str(build_bindir(home(), build.ident))
    return find_binaries(TargetPlan("installed", bindir=bindir), user)


def _conninfo(plan: TargetPlan) -> str:
    if plan.conninfo is None:
        raise PlanError("a running target has no conninfo", "Give target.conninfo in the plan.")
    return plan.conninfo
