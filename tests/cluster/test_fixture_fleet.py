"""Fixtures of plans with hosts: filled by all of them, and the same as from one."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest

from pgdyno.api import load_plan
from pgdyno.api.planning import Plan
from pgdyno.loader.consistency import require
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, HostLostError, Interrupted
from pgdyno.model.progress import Event, LoadProgress, Noted
from pgdyno.target.running_target import RunningTarget
from pgdyno.trial import shared_loading
from pgdyno.trial.fixture import make_fixture
from tests import children
from tests.cluster.conftest import Opener, cluster_apart
from tests.cluster.loading import LOADED_AT, PGBENCH, contents, keys, new_database, run
from tests.cluster.test_load_fleet import Processes, Struck
from tests.cluster.test_load_fleet import struck as _struck
from tests.data.workloads import tpcb
from tests.waiting import until

pytestmark = pytest.mark.cluster
struck = _struck
PLAN = """
name = "filled"
question = "Do hosts fill the tables of a plan?"

[target]
{target}

[workload]
{data}
connections = 4

[protocol]
rounds = 1
warmup_s = 0.2
window_s = 1

[fleet]
hosts = ["local:0", "local:1"]

[[stage]]
name = "as-it-comes"
why = "What everybody gets."
"""
SMALL = 'kind = "tpcb"\nscale = 2'
LONG = 'kind = "tpcc"\nwarehouses = 2'  # its copies last until somebody has struck
RECORD = "SELECT key, value FROM pgdyno_load ORDER BY key"


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    """Somebody's server, with one process's load in the database `whole`."""
    with cluster_apart("embedded-18", "socket") as cluster:
        whole = new_database(cluster.connection(), "whole")
        load(whole, tpcb(2), How(connections=2), loaded_at_unix_s=LOADED_AT)
        yield cluster.connection().to("postgres")


@pytest.fixture
def empty(server: Connection) -> Connection:
    """That server without fixtures."""
    for (name,) in fixtures(server):
        run(server, f"DROP DATABASE {name} WITH (FORCE)")
    return server


@pytest.fixture
def then(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows carry the time of the load; so that of the other one."""
    clock = SimpleNamespace(monotonic=time.monotonic, time=lambda: LOADED_AT)
    monkeypatch.setattr(shared_loading, "time", clock)


def plan_for(folder: Path, target: str, data: str = SMALL) -> Plan:
    path = folder / "filled.toml"
    path.write_text(PLAN.format(target=target, data=data))
    return load_plan(path)


def conninfo(connection: Connection) -> str:
    return psycopg.conninfo.make_conninfo(**connection.arguments())


def of_running(server: Connection) -> str:
    return f'kind = "running"\nconninfo = "{conninfo(server)}"'


def require_the_same(found: Connection, server: Connection) -> None:
    """Rows, indexes, and what the database knows of its load."""
    whole = server.to("whole")
    assert contents(found, PGBENCH) == contents(whole, PGBENCH)
    assert keys(found) == keys(whole)
    assert run(found, RECORD) == run(whole, RECORD)


def test_hosts_fill_the_tables_of_a_private_cluster(
    open_own: Opener, folder: Path, server: Connection, then: None
) -> None:
    plan, told = plan_for(folder, 'kind = "embedded"'), list[Event]()
    assert "load from local:0 and local:1, its tables as well" in str(plan.preview())
    target = open_own("embedded-18", home=folder / "home")

    fixture = make_fixture(plan.record, target, told.append, plan.stages[0])

    require(fixture.conditions)
    assert fixture.loaded is not None
    (note,) = [one.text for one in told if isinstance(one, Noted)]
    assert note.startswith("Tables were filled from local:0: ")
    assert " and local:1: " in note
    loading = [one for one in told if isinstance(one, LoadProgress)]
    assert [one.phase for one in loading][-1] == "done"
    assert fixture.loaded.rows == loading[-1].rows
    alone = make_fixture(load_plan(plan_alone(folder)).record, target, told.append, plan.stages[0])
    assert (alone.ident, alone.reused) == (fixture.ident, True)
    target.restore(fixture.ident)
    require_the_same(target.apply(()).connection, server)


def plan_alone(folder: Path) -> Path:
    """The same without hosts."""
    path = folder / "alone.toml"
    text = PLAN.format(target='kind = "embedded"', data=SMALL)
    path.write_text(text.replace('[fleet]\nhosts = ["local:0", "local:1"]\n', ""))
    return path


def interrupt(_pid: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.wide
def test_a_load_that_loses_a_host_leaves_nothing_and_is_made_anew(
    struck: Struck, folder: Path, empty: Connection
) -> None:
    plan = plan_for(folder, of_running(empty), LONG)
    strikes: list[tuple[Callable[[int], None], type[DriveError | Interrupted], str]] = [
        (lambda pid: os.kill(pid, signal.SIGKILL), HostLostError,
         "host local:1 could not copy its rows: its process ended with code -9"),
        (interrupt, Interrupted, "the load was stopped while hosts had it"),
    ]  # fmt: skip
    with ExitStack() as stack:
        target = RunningTarget(conninfo(empty))
        stack.callback(target.close)
        for strike, raised, said in strikes:
            processes = struck(strike)
            with pytest.raises(raised) as error:
                make_fixture(plan.record, target, follower(processes), plan.stages[0])
            assert (error.value.fact, error.value.hint) == (said, "What was loaded is removed.")
            assert not fixtures(empty)
            assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids.values())

        fixture = make_fixture(plan.record, target, lambda _: None, plan.stages[0])

        require(fixture.conditions)
        assert fixture.loaded is not None
        target.restore(fixture.ident)
        ready = target.apply(())
        rows = sum(count for count, _ in contents(ready.connection).values())
        assert fixture.loaded.rows == rows


def follower(processes: Processes) -> Callable[[Event], None]:
    """Tells them of the load alone."""

    def follow(event: Event) -> None:
        if isinstance(event, LoadProgress):
            processes.follow(event)

    return follow


def fixtures(server: Connection) -> list[tuple[str]]:
    return run(server, "SELECT datname FROM pg_database WHERE datname ~ '^pgdyno_fixture'")


@pytest.mark.long
def test_a_head_that_is_killed_leaves_no_host_at_work_and_the_next_run_begins_anew(
    folder: Path, home_env: Path, empty: Connection
) -> None:
    plan_for(folder, of_running(empty), LONG)
    words = [sys.executable, "-m", "pgdyno", "run", str(folder / "filled.toml")]
    head = children.started([*words, "--out", str(folder / "killed.sqlite")], text=True)
    of_load = "SELECT count(*) FROM pgdyno_load_progress WHERE step ~ '^copy'"

    def has_copied() -> bool:
        assert head.poll() is None
        try:
            return any(run(empty.to(name), of_load) > [(0,)] for (name,) in fixtures(empty))
        except (psycopg.errors.UndefinedTable, psycopg.OperationalError):
            return False

    until(has_copied, "rows of the fixture are there")
    head.kill()
    head.communicate()
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname ~ '^pgdyno_fixture'"
    until(lambda: run(empty, sessions) == [(0,)], "no host copies")

    done = children.started([*words, "--out", str(folder / "again.sqlite")], text=True)

    assert done.wait() in (0, 1)  # hosts of a busy machine may not drive together
    assert (folder / "again.html").exists()
