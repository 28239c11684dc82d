"""Opens a plan's target: finds the installation or the running server, and asks what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.settings import HostFacts, ServerFacts
from pgdyno.plan.fixture import fixture_ident
from pgdyno.shell import postgres_user
from pgdyno.stage.binaries import find_binaries
from pgdyno.stage.cluster import server_settings
from pgdyno.stage.home import home
from pgdyno.stage.host import host_facts
from pgdyno.stage.own import OwnTarget, kept_fixture
from pgdyno.stage.running import RunningTarget
from pgdyno.stage.target import Target


def data_folder() -> Path:
    """Where clusters and fixtures lie."""
    return home()


def local_facts() -> HostFacts:
    """This host, with the folder of clusters."""
    return host_facts(home())


def server_facts(plan: TargetPlan) -> ServerFacts:
    """Version and settings of a plan's server. Nothing stays of what it takes to learn them.

    Raises:
        TargetError: It is not there.
    """
    if plan.kind == "running":
        target = RunningTarget(_conninfo(plan))
        try:
            return target.facts
        finally:
            target.close()
    user = postgres_user()
    return server_settings(find_binaries(plan, user, home()), user)


def fixture_bytes(plan: TargetPlan, shape: dict[str, Any]) -> int | None:
    """Size of a plan's fixture if it is there already; None if it must be loaded."""
    found = None if plan.kind == "running" else kept_fixture(home(), fixture_ident(shape))
    return found.data_bytes if found else None


def open_target(plan: TargetPlan, facts: ServerFacts, host: HostFacts) -> Target:
    """The server under test, ready for its fixture. Close it in any case.

    Raises:
        TargetError: It is not there, or another pgdyno uses its folder.
    """
    if plan.kind == "running":
        return RunningTarget(_conninfo(plan))
    user = postgres_user()
    binaries = find_binaries(plan, user, home())
    return OwnTarget(plan, binaries, facts, user, home(), host.memory_bytes)


def _conninfo(plan: TargetPlan) -> str:
    if plan.conninfo is None:
        raise PlanError("a running target has no conninfo", "Give target.conninfo in the plan.")
    return plan.conninfo
