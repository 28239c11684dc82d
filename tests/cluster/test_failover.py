"""The primary is killed while the driver works, the standby takes over: nothing is lost.

The standby is synchronous, so that what the server acknowledged is on both; what the driver counts
as committed must be there, and what is there beyond that it must have counted as unknown.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import psutil
import psycopg
import pytest

from pgdyno import _core
from pgdyno.loader.copy import load
from pgdyno.model.connection import Connection
from pgdyno.sample.sampler import Sampler, Subject
from pgdyno.sample.samplers import server_statistics
from pgdyno.shell import postgres_user, run
from pgdyno.target.binaries import Binaries, find_binaries
from pgdyno.target.cluster import Cluster, initdb
from pgdyno.target.conninfo import reach
from pgdyno.target.home import made_for
from pgdyno.workload.spec import workload_spec
from tests.cluster.conftest import TARGETS
from tests.data.workloads import tpcb
from tests.reachable import reachable_folder
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
WORKLOAD = tpcb()
CONNECTIONS = 4


@dataclass(frozen=True, slots=True)
class Pair:
    """A primary and its synchronous standby."""

    primary: Cluster
    standby: Cluster
    binaries: Binaries

    def fail_over(self) -> None:
        """Kill the primary with everything that belongs to it, and promote the standby."""
        postmaster = psutil.Process(self.primary.pid)
        for process in (postmaster, *postmaster.children()):
            process.kill()
        words = ["promote", "-w", "-D", str(self.standby.data)]
        run([self.binaries.program("pg_ctl"), *words], user=postgres_user())


@pytest.fixture
def pair() -> Iterator[Pair]:
    user = postgres_user()
    for folder in reachable_folder("failover"):
        binaries = find_binaries(TARGETS["embedded-18"], user)
        initdb(binaries, folder / "primary", user, ("--no-sync",))
        with (folder / "primary" / "pg_hba.conf").open("a") as hba:
            hba.write("local replication all trust\n")
        primary = Cluster(binaries, folder / "primary", user, "socket")
        standby = None
        try:
            primary.start([])
            load(primary.connection(), WORKLOAD)
            standby = follow(primary, binaries)
            yield Pair(primary, standby, binaries)
        finally:
            for cluster in (primary, standby):
                if cluster is not None:
                    cluster.close()


def follow(primary: Cluster, binaries: Binaries) -> Cluster:
    """A standby that has what the primary acknowledges."""
    user = postgres_user()
    at = primary.connection()
    data = made_for(primary.data.parent / "standby", user)
    words = [
        "-h",
        at.host,
        "-p",
        str(at.port),
        "-U",
        at.user,
        "-R",
        "-c",
        "fast",
        "-N",
        "-D",
        str(data),
    ]
    run([binaries.program("pg_basebackup"), *words], user=user)
    standby = Cluster(binaries, data, user, "socket")
    standby.start([])
    with psycopg.connect(**at.arguments(), autocommit=True) as session:
        session.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        session.execute("SELECT pg_reload_conf()")
        wait(lambda: rows(session, "SELECT sync_state FROM pg_stat_replication") == [("sync",)])
    return standby


def rows(session: psycopg.Connection[Any], query: str) -> list[tuple[Any, ...]]:
    return session.execute(query.encode()).fetchall()


def wait(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def both(pair: Pair) -> Connection:
    """The standby first: it must be passed over as long as it is one."""
    hosts = [pair.standby.connection(), pair.primary.connection()]
    names, ports = (",".join(str(getattr(h, key)) for h in hosts) for key in ("host", "port"))
    user = hosts[0].user
    return reach(
        f"host={names} port={ports} user={user} dbname=postgres target_session_attrs=read-write"
    )


def spec(connection: Connection) -> str:
    return json.dumps({
        "version": 1,
        "workload": workload_spec(replace(WORKLOAD, face="pipeline")),
        "connection": connection.spec(),
        "connections": CONNECTIONS, "terminals": CONNECTIONS, "threads": 2,
        "warmup_s": 0.0, "window_s": 900.0, "drain_s": 10.0, "allow_debug": True,
    })  # fmt: skip


def test_no_acknowledged_transaction_is_lost_and_no_other_appears(pair: Pair) -> None:
    connection = both(pair)
    driver = _core.Drive(spec(connection))
    driver.start()

    def progress() -> dict[str, Any]:
        state: dict[str, Any] = json.loads(driver.poll())
        return state

    def committed() -> int:
        return sum(progress()["committed"].values())

    wait(lambda: committed() > 100)
    pair.fail_over()
    wait(lambda: progress()["reconnects"] == CONNECTIONS)
    before = committed()
    wait(lambda: committed() > before + 100)
    driver.stop()
    result = json.loads(driver.result())

    (counts,) = [kind["run"] for kind in result["kinds"]]
    with psycopg.connect(**pair.standby.connection().arguments()) as session:
        ((found,),) = rows(session, "SELECT count(*) FROM pgbench_history")
        balances = "SELECT (SELECT sum(bbalance) FROM pgbench_branches), sum(delta)"
        ((branches, deltas),) = rows(session, f"{balances} FROM pgbench_history")
    assert counts["succeeded"] <= found <= counts["succeeded"] + counts["unknown"]
    assert branches == deltas
    assert counts["unknown"] <= counts["failed"]
    assert counts["unfinished"] == 0
    assert counts["due"] == counts["succeeded"] + counts["failed"]
    assert result["outcome"] == "stopped"
    assert result["reconnects"] == CONNECTIONS
    lost = {error["sqlstate"]: error["count"] for error in result["errors"]}
    assert lost == {"connection lost": CONNECTIONS}
    gone = [gap["connections"] for gap in result["gaps"]]
    assert max(gone) == CONNECTIONS
    assert all(gap["end_unix_ns"] > gap["start_unix_ns"] for gap in result["gaps"])


@pytest.mark.long
def test_a_standby_that_does_not_replay_is_seen_to_fall_behind(pair: Pair) -> None:
    with (
        psycopg.connect(**pair.primary.connection().arguments(), autocommit=True) as primary,
        psycopg.connect(**pair.standby.connection().arguments(), autocommit=True) as standby,
    ):
        found = server_statistics.sampler(Subject(primary, ["postgres"]))
        assert isinstance(found, list)
        sampler = found[0]
        assert isinstance(sampler, Sampler)
        standby.execute("SELECT pg_wal_replay_pause()")
        primary.execute("CREATE TABLE filled AS SELECT generate_series(1, 100000) AS number")
        assert sampler.take()["replication.behind_bytes"] > 1_000_000
        standby.execute("SELECT pg_wal_replay_resume()")
        wait(lambda: sampler.take()["replication.behind_bytes"] == 0)
