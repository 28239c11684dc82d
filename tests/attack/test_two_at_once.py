"""Two pgdynos at once: on one database, on one server, in one folder that is probed.

Benches share a database. Everything else is alone, and is told who is in the way.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno import api
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.probe.folder import own_folder
from pgdyno.target import database_use
from pgdyno.target.database_use import in_use
from pgdyno.target.server_owner import OWNER, Owner
from tests import children
from tests.attack.owning import conninfo_of
from tests.attack.witness import database_facts, server_facts
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import new_database, run
from tests.reachable import reachable_folder
from tests.waiting import DEADLINE_S

cluster = pytest.mark.cluster
WHO = r"process \d+ on host \S+ since 20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC \(role"


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with cluster_apart("embedded-18", "socket") as started:
        yield new_database(started.connection(), "shop")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_use, "_PATIENCE_S", 0.1)


@cluster
@pytest.mark.parametrize(
    ("first", "second", "together"),
    [(False, False, True), (False, True, False), (True, False, False), (True, True, False)],
    ids=["benches", "bench then knee", "knee then bench", "knees"],
)
def test_only_benches_share_a_database(
    server: Connection, first: bool, second: bool, together: bool
) -> None:
    with in_use(server, alone=first):
        if together:
            with in_use(server, alone=second):
                return
        with (
            pytest.raises(TargetError, match=f"another pgdyno uses .*: {WHO}"),
            in_use(server, alone=second),
        ):
            pytest.fail("both were let in")
        with in_use(server.to("postgres"), alone=True):
            pass  # another database
    with in_use(server, alone=True):
        pass  # at once, when the first one is gone


@cluster
@pytest.mark.parametrize("alone", [False, True])
def test_a_run_and_what_is_beside_it_exclude_each_other(server: Connection, alone: bool) -> None:
    before = server_facts(server)
    owner = Owner(server.to("postgres"))
    try:
        with (
            pytest.raises(TargetError, match=f"a run of another pgdyno has the server .*: {WHO}"),
            in_use(server, alone=alone),
        ):
            pytest.fail("it was let in")
    finally:
        owner.release()
    with in_use(server, alone=alone):
        held = server_facts(server)
        told = f"another pgdyno uses database shop of the server .*: {WHO}"
        with pytest.raises(TargetError, match=told):
            Owner(server.to("postgres"))
        assert server_facts(server) == held, f"{OWNER} is not left behind"
    assert server_facts(server) == before


@cluster
def test_behind_a_pooler_nothing_is_held_and_all_is_seen(server: Connection) -> None:
    pooled = replace(server, pooled=True)
    before = server_facts(server)
    with in_use(pooled, alone=False):
        assert server_facts(server)["locks"] == before["locks"]
    with in_use(server, alone=False), in_use(pooled, alone=False):
        pass
    with (
        in_use(server, alone=True),
        pytest.raises(TargetError, match="another pgdyno uses"),
        in_use(pooled, alone=False),
    ):
        pytest.fail("it was let in")
    owner = Owner(server)
    try:
        with pytest.raises(TargetError, match="a run of"), in_use(pooled, alone=False):
            pytest.fail("it was let in")
    finally:
        owner.release()


@cluster
def test_who_was_killed_keeps_nobody_out(
    server: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_use, "_PATIENCE_S", DEADLINE_S)
    code = (
        "import sys, time; from pgdyno.target.conninfo import reach;"
        " from pgdyno.target.database_use import in_use\n"
        "with in_use(reach(sys.argv[1]), alone=True): print('held', flush=True); time.sleep(600)"
    )
    held = children.started(
        [sys.executable, "-c", code, conninfo_of(server)], text=True, stdout=subprocess.PIPE
    )
    assert held.stdout is not None
    assert held.stdout.readline() == "held\n"
    held.kill()
    held.wait(DEADLINE_S)
    with in_use(server, alone=True):
        pass


@cluster
def test_commands_ask_before_they_change_anything(server: Connection, tmp_path: Path) -> None:
    """Each of them by its function, while somebody has the database alone."""
    data = api.Data("tpcb", 1)
    api.load(data, server, check=False)
    asked = api.Asked("tpcb", connections=1)
    search = api.Search(10**9, start=10, low=10, high=20)

    def bench() -> api.Benched:
        return api.bench(asked, server, seconds=1, warmup=0)

    def knee() -> object:
        return api.knee(asked, server, search, out=tmp_path / "knee.sqlite")

    def load() -> object:
        return api.load(data, server, intent="drop_ours", check=False)

    with in_use(server, alone=True):
        before = database_facts(server)
        for command in (bench, knee, load):
            with pytest.raises(TargetError, match="another pgdyno uses"):
                command()
            assert database_facts(server) == before
    with in_use(server, alone=False):
        assert bench().driven.error is None
        for command in (knee, load):
            with pytest.raises(TargetError, match="another pgdyno uses"):
                command()
    assert bench().driven.error is None
    assert run(server, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == [(0,)]


def test_two_probes_of_one_folder_would_measure_each_other() -> None:
    for folder in reachable_folder("probed"):
        with own_folder(folder):
            before = sorted(folder.rglob("*"))
            with (
                pytest.raises(PlanError, match=f"another pgdyno works in {folder}"),
                own_folder(folder),
            ):
                pytest.fail("both were let in")
            assert sorted(folder.rglob("*")) == before
        with own_folder(folder):
            pass  # at once, when the first one is gone
        assert not list(folder.iterdir())
