"""One workload over several servers: tenants, and one TPC-C sharded by warehouse."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.api import Run
from pgdyno.drive.driver import Wishes, drive
from pgdyno.drive.null import null_server
from pgdyno.drive.spec import Part
from pgdyno.model.connection import Connection
from pgdyno.model.errors import LostError, StoppedError
from pgdyno.model.fleet import Fleet
from pgdyno.model.plan import Protocol
from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from pgdyno.model.settings import Rung
from pgdyno.store.run_file import RunFile
from pgdyno.target.server_owner import OWNER
from pgdyno.target.servers_target import ServersTarget
from tests.cluster.conftest import cluster_apart
from tests.cluster.test_run import pgdyno
from tests.cluster.test_running_target import databases
from tests.data.workloads import tpcc
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
PROTOCOL = Protocol(1, 0.0, 600.0, 20.0, False, 0.02, 0.95, Rung.D0)
PLAN = """
name = "several"
question = "What do two servers do with one workload?"

[target]
kind = "running"
servers = [{servers}]
share = "{share}"

[workload]
kind = "tpcc"
warehouses = {warehouses}
connections = 4
terminals = 8

[protocol]
rounds = 1
warmup_s = 0.5
window_s = 3
lowest_rung = "D2"

[[stage]]
name = "as-it-is"
why = "What is there."

[[stage]]
name = "async"
why = "Commits do not wait for the disk."
settings = {{ synchronous_commit = "off" }}
"""


@pytest.fixture(scope="module")
def both() -> Iterator[list[Connection]]:
    """Two servers of somebody else, of one version."""
    with ExitStack() as stack:
        clusters = [stack.enter_context(cluster_apart("embedded-18", "socket")) for _ in range(2)]
        yield [one.connection().to("postgres") for one in clusters]


def conninfo(connection: Connection) -> str:
    return psycopg.conninfo.make_conninfo(**connection.arguments())


def plan_of(folder: Path, servers: list[Connection], share: str, warehouses: int) -> Path:
    named = ", ".join(f'"{conninfo(one)}"' for one in servers)
    path = folder / "several.toml"
    path.write_text(PLAN.format(servers=named, share=share, warehouses=warehouses))
    return path


def finished(path: Path) -> list[tuple[TrialRecord, TrialResult]]:
    with RunFile.read(path) as run:
        trials = run.trials()
    assert [one.state for one in trials] == [TrialState.FINISHED] * 2, [
        one.reason for one in trials
    ]
    return [(one, one.result) for one in trials if one.result is not None]


def warehouses_in(connection: Connection) -> list[set[int]]:
    """Of each fixture that was kept there."""
    found = []
    for name in sorted(databases(connection)):
        if name.startswith("pgdyno_fixture_"):
            with psycopg.connect(**connection.arguments(), autocommit=True) as session:
                # Nobody may enter a template, so that it is copied to be looked at.
                session.execute(f"CREATE DATABASE look TEMPLATE {name}")
            try:
                with psycopg.connect(**connection.to("look").arguments()) as session:
                    rows = session.execute("SELECT w_id FROM warehouse").fetchall()
                    stock = session.execute("SELECT DISTINCT s_w_id FROM stock").fetchall()
                    items = session.execute("SELECT count(*) FROM item").fetchone()
            finally:
                with psycopg.connect(**connection.arguments(), autocommit=True) as session:
                    session.execute("DROP DATABASE look")
            assert set(rows) == set(stock)
            assert items == (100_000,)
            found.append({one for (one,) in rows})
    return found


def require_sums(result: TrialResult) -> None:
    """Counts of the whole are those of the servers together, of driver and of servers."""
    assert len(result.parts) == len(result.servers) == 2
    assert [one.name for one in result.parts] == [one.name for one in result.servers]
    for at, kind in enumerate(result.kinds):
        of_parts = [part.kinds[at] for part in result.parts]
        assert {one.kind for one in of_parts} == {kind.kind}
        for count in ("due", "succeeded", "rolled_back", "failed", "unfinished"):
            assert sum(getattr(one.window, count) for one in of_parts) == getattr(
                kind.window, count
            )
    for name in ("wal.bytes", "database.commits", "database.rows_inserted"):
        each = [one.deltas[name] for one in result.servers]
        assert all(value > 0 for value in each)
        assert result.deltas[name] == pytest.approx(sum(each))
    assert "cpu.user_s" in result.deltas, "this host is sampled once"
    for part, server in zip(result.parts, result.servers, strict=True):
        committed = sum(one.window.succeeded for one in part.kinds)
        # Of the same window to within a sample, in which a server may be told late.
        told = server.deltas["database.commits"] - server.deltas["database.own_commits"]
        assert told == pytest.approx(committed, rel=0.5)
        assert server.violations == 0


@pytest.mark.wide
def test_tenants_have_a_server_each(folder: Path, both: list[Connection]) -> None:
    before = [databases(one) for one in both]
    out = folder / "alike.sqlite"

    pgdyno("run", plan_of(folder, both, "alike", 1), "--out", out)

    for trial, result in finished(out):
        require_sums(result)
        assert [one.held for one in result.servers] == ["1 warehouse"] * 2
        assert all(one.ok for one in result.conditions)
        assert result.durability is not None
        lost = {loss.what: loss.source for loss in result.durability.losses}
        assert ("synchronous_commit = off" in lost) == (trial.stage == "async")
        assert all(source.startswith("all servers: ") for source in lost.values())
    for connection, there in zip(both, before, strict=True):
        left = databases(connection) - there
        assert len(left) == 1
        assert next(iter(left)).startswith("pgdyno_fixture_")
    with RunFile.read(out) as run:
        (fixture,) = run.fixtures()
        assert [one.ident for one in fixture.others] == [fixture.ident]
        names = set(run.series(1))
    result = finished(out)[0][1]
    assert {f"{one.name}: wal.bytes" for one in result.servers} <= names
    assert "wal.bytes" not in names, "no server's samples are taken for those of all"
    facts = Run(out).facts
    assert facts.servers is not None
    assert [one.share for one in facts.servers.rows if one.stage == "async"] == pytest.approx(
        [0.5, 0.5], abs=0.45
    )
    assert not facts.parts
    shown = pgdyno("report", out, "--format", "md", "--out", "-").stdout
    assert re.search(r"^## Servers$", shown, re.MULTILINE)
    assert "held in 1 round" in shown
    assert "whose sessions were sampled apart" in shown
    plain = shown.replace("\\", "")  # Markdown marks the underscores that end a word, no others
    assert all(f"{both[at].host}:{both[at].port}" in plain for at in (0, 1))


@pytest.mark.long
def test_one_tpcc_is_sharded_by_warehouse(folder: Path, both: list[Connection]) -> None:
    already = [len(warehouses_in(one)) for one in both]
    out = folder / "block.sqlite"
    plan = plan_of(folder, both, "block", 4)

    shown = pgdyno("run", plan, "--dry-run").stdout
    assert "each with 2 warehouses, and an even part of connections" in " ".join(shown.split())
    pgdyno("run", plan, "--out", out)

    for _, result in finished(out):
        # A request for a warehouse that is elsewhere would have failed.
        require_sums(result)
        assert [one.held for one in result.servers] == ["warehouses 1 to 2", "warehouses 3 to 4"]
        audit = {one.name: one for one in result.audit}
        assert audit["remote payments"].measured == pytest.approx(0.15, abs=0.1)
        assert audit["remote payments"].ok
    for number, connection in enumerate(both):
        found = warehouses_in(connection)
        assert len(found) == already[number] + 1
        assert {2 * number + 1, 2 * number + 2} in found
    facts = Run(out).facts
    (deviation,) = [one for one in facts.deviations if one.clause.startswith("2.4.1.5")]
    assert "2 servers hold 2 of 4 warehouses each" in deviation.what
    # 15 % and 1 %, of which two of the three other warehouses lie elsewhere.
    assert "10.00% of the payments and 0.67% of the order lines" in deviation.what
    again = pgdyno("run", plan, "--out", folder / "again.sqlite")
    assert again.stdout
    with RunFile.read(folder / "again.sqlite") as run:
        (fixture,) = run.fixtures()
    assert fixture.reused
    assert all(one.reused for one in fixture.others)


def test_blocks_ask_for_what_the_whole_asks_for() -> None:
    """As many of each kind, by the same terminals; what is remote is drawn elsewhere."""
    whole = replace(tpcc(4, seed=5), connections=4, terminals=16, requests_max=20)
    divided = whole.over(2, "block")
    with null_server(whole) as server:
        one = drive(server.connection, whole, PROTOCOL, None)
        parts = [Part(name, server.connection.to(name)) for name in ("first", "second")]
        two = drive(server.connection, divided, PROTOCOL, None, wishes=Wishes(parts=parts))

    assert one.stream_digest is not None
    assert two.stream_digest is not None
    assert two.stream_digest.requests == one.stream_digest.requests == 16 * 20
    assert two.stream_digest.sum != one.stream_digest.sum
    counts = [{kind.kind: kind.run.succeeded + kind.run.rolled_back for kind in each.kinds}
              for each in (one, two)]  # fmt: skip
    assert counts[0] == counts[1]
    each = [sum(kind.run.due for kind in part.kinds) for part in two.parts]
    assert each == [8 * 20, 8 * 20]


def test_hosts_of_a_fleet_ask_every_server() -> None:
    divided = replace(tpcc(4, seed=5), connections=8, terminals=16, requests_max=10)
    divided = divided.over(2, "block")
    with null_server(divided) as server:
        parts = [Part(name, server.connection.to(name)) for name in ("first", "second")]
        one = drive(server.connection, divided, PROTOCOL, None, wishes=Wishes(parts=parts))
        protocol = replace(PROTOCOL, fleet=Fleet(("local:a", "local:b")))
        both = drive(server.connection, divided, protocol, None, wishes=Wishes(parts=parts))

    assert both.stream_digest == one.stream_digest
    assert both.fleet is not None
    assert [host.connections for host in both.fleet.hosts] == [4, 4]
    assert [host.terminals for host in both.fleet.hosts] == [8, 8]
    each = [sum(kind.run.due for kind in part.kinds) for part in both.parts]
    assert each == [8 * 10, 8 * 10]


def sessions_in(connection: Connection, database: str) -> list[int]:
    query = "SELECT pid FROM pg_stat_activity WHERE datname = %s"
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        return [pid for (pid,) in session.execute(query, (database,)).fetchall()]


def test_who_ends_our_session_on_one_server_ends_the_run(both: list[Connection]) -> None:
    target = ServersTarget([conninfo(one) for one in both])
    (pid,) = sessions_in(both[1], OWNER)
    with psycopg.connect(**both[1].arguments(), autocommit=True) as session:
        session.execute("SELECT pg_terminate_backend(%s)", (pid,))
    with pytest.raises(StoppedError, match="ended this run's session"):
        target.each[1].find_fixture("none")
    target.close()

    # The other server's session was given back, which looks like one that a crash has ended.
    with pytest.raises(StoppedError) as caught:
        target.came_back(1.0)
    where = f"server {both[1].host}:{both[1].port}"
    assert caught.value.fact.startswith(f"{where}: the server runs, but somebody ended")
    assert caught.value.hint == "What is left on the server goes when the next run begins there."


def test_one_server_that_crashed_and_recovered_is_back(both: list[Connection]) -> None:
    target = ServersTarget([conninfo(one) for one in both])
    (pid,) = sessions_in(both[1], OWNER)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LostError):
        target.each[1].find_fixture("none")
    target.close()

    assert target.came_back(DEADLINE_S)


def test_servers_that_are_not_several_are_refused(folder: Path, both: list[Connection]) -> None:
    first = both[0]
    twice = plan_of(folder, [first, first.to("template1")], "alike", 1)

    done = pgdyno("run", twice, code=2)

    assert "are one and the same server" in " ".join(done.stderr.split())
    before = databases(first)
    with cluster_apart("debian-15", "socket") as old:
        mixed = plan_of(folder, [first, old.connection().to("postgres")], "alike", 1)
        done = pgdyno("run", mixed, code=2)
    said = " ".join(done.stderr.split())
    assert "target.servers: are of several versions" in said
    assert "allowed: one major version" in said
    assert databases(first) == before
