"""Real servers for tests: folders that PostgreSQL's user can reach, and targets on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from pgdyno.loader.consistency import check
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.plan import Target as TargetPlan
from pgdyno.model.run import Fixture
from pgdyno.model.settings import ServerFacts
from pgdyno.shell import postgres_user
from pgdyno.store.calibration import calibration_path
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb, server_settings
from pgdyno.target.host_facts import host_facts
from pgdyno.target.own_target import OwnTarget
from pgdyno.workload.describe import describe
from tests.data.workloads import tpcc
from tests.reachable import reachable_folder

DEBIAN_BINDIR = "/usr/lib/postgresql/15/bin"
TARGETS = {
    "embedded-18": TargetPlan("embedded"),
    "debian-15": TargetPlan("installed", bindir=DEBIAN_BINDIR),
}
# For tests of what is the same in every version: one of them every day, both in the long run.
VERSIONS = (pytest.param("debian-15", marks=pytest.mark.long), "embedded-18")
OLD_VERSION_FIRST = ("debian-15", pytest.param("embedded-18", marks=pytest.mark.long))
WORKLOAD = tpcc(2)


@pytest.fixture(scope="session")
def session_home() -> Iterator[Path]:
    """A PGDYNO_HOME for the whole session, so that fixtures are loaded once."""
    yield from reachable_folder("home")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder of one test that any user can enter."""
    yield from reachable_folder("test")


@pytest.fixture
def home_env(session_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The session's home, set in the environment. Fixtures stay in it; ceilings do not."""
    monkeypatch.setenv("PGDYNO_HOME", str(session_home))
    yield session_home
    # The reports of tests that come later would name a ceiling that they did not ask for.
    calibration_path(session_home).unlink(missing_ok=True)


@pytest.fixture
def without_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drills plant no faults: for tests of something else, which assert nothing of them."""
    monkeypatch.setattr("pgdyno.api.experiments.drill.planted", lambda _: [])


@cache
def settings_of(_name: str, binaries: Binaries) -> ServerFacts:
    """Settings of a build, asked once a session."""
    return server_settings(binaries, postgres_user())


Opener = Callable[..., OwnTarget]


@contextmanager
def opened(
    name: str, home: Path, transport: Literal["socket", "tcp"] = "socket"
) -> Iterator[OwnTarget]:
    """A target of ours, closed in any case. One at a time has a home."""
    plan = replace(TARGETS[name], transport=transport)
    user = postgres_user()
    binaries = find_binaries(plan, user)
    facts = settings_of(name, binaries)
    target = OwnTarget(plan, binaries, facts, user, home, host_facts(home).memory_bytes)
    try:
        yield target
    finally:
        target.stop()
        target.close()


@pytest.fixture
def open_own(session_home: Path) -> Iterator[Opener]:
    """Opens a target of ours, and closes it when the test ends."""
    with ExitStack() as stack:

        def opener(
            name: str, transport: Literal["socket", "tcp"] = "socket", home: Path = session_home
        ) -> OwnTarget:
            return stack.enter_context(opened(name, home, transport))

        yield opener


def loaded(target: OwnTarget) -> Fixture:
    """The small fixture of the tests on this target, loaded where it is not there yet."""
    ident = f"tests-{target.facts.major}"
    if found := target.find_fixture(ident):
        return found
    connection: Connection = target.begin_fixture(ident)
    report = load(connection, WORKLOAD, How(connections=2))
    conditions = check(connection, describe(WORKLOAD).conditions)
    return target.keep_fixture(
        Fixture(
            ident,
            FixtureShape(postgres_major=target.facts.major),
            0,
            report,
            conditions,
            "",
            reused=False,
        )
    )


@contextmanager
def cluster_apart(name: str, transport: str) -> Iterator[Cluster]:
    """A running server of its own, as somebody else would have it; not a target of pgdyno's."""
    for folder in reachable_folder("apart"):
        user = postgres_user()
        binaries = find_binaries(TARGETS[name], user)
        data = folder / "data"
        initdb(binaries, data, user, ("--no-sync",))
        cluster = Cluster(binaries, data, user, transport)
        try:
            cluster.start([])
            yield cluster
        finally:
            cluster.close()


@pytest.fixture(scope="module", params=["embedded-18", "debian-15"])
def server_apart(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """One of each version that tests have a module to themselves with."""
    with cluster_apart(request.param, "socket") as found:
        yield found
