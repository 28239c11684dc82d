"""Tables that several hosts fill together: the rows of one host's load, whatever becomes of one."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.drive import loading_hosts, transport
from pgdyno.drive.transports import local
from pgdyno.loader.consistency import check, require
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, HostLostError, Interrupted
from pgdyno.model.fleet import Fleet
from pgdyno.model.host_address import HostAddress
from pgdyno.model.progress import LoadProgress
from pgdyno.shell import Process
from pgdyno.target.cluster import Cluster
from pgdyno.trial.shared_loading import load_from_hosts
from pgdyno.workload.describe import describe
from tests import children
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import (
    LOADED_AT,
    PGBENCH,
    contents,
    keys,
    left_alone,
    new_database,
    pages,
    run,
)
from tests.cluster.networked import namespaces, server_on_the_network
from tests.cluster.test_run import pgdyno
from tests.data.workloads import changed, tpcb, tpcc
from tests.waiting import until

pytestmark = pytest.mark.cluster
SPEC = tpcc(2, foreign_keys=True)
RESUME = How(connections=3, intent="resume")


def hosts(count: int) -> Fleet:
    return Fleet(tuple(f"local:{number}" for number in range(count)))


@dataclass
class Whole:
    """A server, with one process's load in a database."""

    cluster: Cluster
    connection: Connection
    contents: dict[str, Any]

    def new(self, name: str) -> Connection:
        return new_database(self.cluster.connection(), name)


@pytest.fixture(scope="module")
def whole() -> Iterator[Whole]:
    with cluster_apart("embedded-18", "socket") as cluster:
        connection = new_database(cluster.connection(), "whole")
        load(connection, SPEC, How(connections=2), loaded_at_unix_s=LOADED_AT)
        yield Whole(cluster, connection, contents(connection))


def require_the_same(whole: Whole, connection: Connection) -> None:
    """Rows, indexes, references, visible pages, and what the database knows of its load."""
    assert contents(connection) == whole.contents
    assert keys(connection) == keys(whole.connection)
    require(check(connection, describe(SPEC).conditions))
    size, visible, frozen = pages(connection, "stock")
    assert visible == frozen >= 0.95 * size - 128
    of_load = "SELECT key, value FROM pgdyno_load ORDER BY key"
    assert run(connection, of_load) == run(whole.connection, of_load)
    made = (
        # Of a load that was added to, also what was dropped for that stands there.
        "SELECT kind, count(*) FROM pgdyno_load_made WHERE id IN"
        " (SELECT oid FROM pg_class UNION ALL SELECT oid FROM pg_constraint) GROUP BY 1 ORDER BY 1",
        "SELECT to_regclass('pgdyno_load_progress') IS NULL",
        "SELECT count(*) FROM pg_class WHERE reloptions::text ~ 'autovacuum'",
    )
    for query in made:
        assert run(connection, query) == run(whole.connection, query)


@pytest.mark.parametrize("count", [1, 2, pytest.param(3, marks=pytest.mark.wide)])
def test_the_rows_are_the_same_from_any_number_of_hosts(whole: Whole, count: int) -> None:
    connection = whole.new(f"from_{count}")
    told: list[LoadProgress] = []

    report, parts = load_from_hosts(
        hosts(count), connection, SPEC, How(connections=4), told.append, loaded_at_unix_s=LOADED_AT
    )

    require_the_same(whole, connection)
    assert [one.name for one in parts] == [f"local:{number}" for number in range(count)]
    assert all(one.report.rows > 0 for one in parts)
    assert sum(one.report.rows for one in parts) == report.rows
    assert {one.name: one.rows for one in report.tables} == {
        table: rows for table, (rows, _) in whole.contents.items()
    }
    names = [phase.name for phase in report.phases]
    assert names == ["prepare", "copy", "index", "vacuum", "foreign_keys", "record"]
    assert (report.steps_done_before, report.loaded_at_unix_s) == (0, LOADED_AT)
    shares = [one.share for one in told]
    assert shares == sorted(shares)
    assert (told[-1].phase, told[-1].share, told[-1].rows) == ("done", 1.0, report.rows)


@dataclass
class Processes:
    """Hosts of this machine whose processes are known, and what befalls one of them."""

    strike: Callable[[int], None]
    pids: dict[str, int] = field(default_factory=dict)
    is_struck: bool = False

    def start(self, address: HostAddress, fleet: Fleet, log: int, module: str) -> Process:
        process = local.TRANSPORT.start(address, fleet, log, module)
        self.pids[address.place] = process.pid
        return process

    def follow(self, state: LoadProgress) -> None:
        """Strike the second host when hosts copy: once rows are told, its own may all be there."""
        if state.phase == "copy" and not self.is_struck:
            self.is_struck = True
            self.strike(self.pids["1"])


Struck = Callable[[Callable[[int], None]], Processes]


@pytest.fixture
def struck(monkeypatch: pytest.MonkeyPatch) -> Struck:
    def begin(strike: Callable[[int], None]) -> Processes:
        found = Processes(strike)
        ways = {"local": transport.Transport("local", found.start)}
        monkeypatch.setattr(loading_hosts, "transports", lambda: ways)
        return found

    return begin


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)


def stop(pid: int) -> None:
    os.kill(pid, signal.SIGSTOP)


def interrupt(_pid: int) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("strike", "raised", "said"),
    [
        (kill, HostLostError,
         "host local:1 could not copy its rows: its process ended with code -9"),
        pytest.param(stop, HostLostError,
                     "host local:1 could not copy its rows: it said nothing for 5 s",
                     marks=pytest.mark.long),
        pytest.param(interrupt, Interrupted, "the load was stopped while hosts had it",
                     marks=pytest.mark.wide),
    ],
    ids=["killed", "silent", "interrupted"],
)  # fmt: skip
def test_a_load_that_loses_a_host_ends_by_its_name_and_goes_on(
    whole: Whole,
    struck: Struck,
    request: pytest.FixtureRequest,
    strike: Callable[[int], None],
    raised: type[DriveError],
    said: str,
) -> None:
    connection = whole.new(f"struck_{request.node.callspec.id}")
    processes = struck(strike)
    how = How(connections=3)

    with pytest.raises(raised) as error:
        load_from_hosts(hosts(3), connection, SPEC, how, processes.follow,
                        loaded_at_unix_s=LOADED_AT)  # fmt: skip

    assert error.value.fact == said
    assert error.value.hint == (
        f"The tables of the load remain in database {connection.database}, incomplete; go on with"
        " --resume, or begin again with --drop-ours, which removes them."
    )
    left_alone(connection)
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes.pids.values())
    with pytest.raises(DriveError, match="has a load that did not end"):
        load(connection, SPEC, how)
    if strike is kill:  # what --drop-ours knows of is all that there is
        relations = "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        load(connection, tpcb(1), How(intent="drop_ours"))
        alone = whole.new("alone")
        load(alone, tpcb(1))
        assert run(connection, relations) == run(alone, relations)
        return
    load_from_hosts(hosts(2), connection, SPEC, RESUME)
    require_the_same(whole, connection)


@pytest.mark.wide
def test_a_head_that_is_killed_leaves_no_host_at_work(whole: Whole) -> None:
    connection = whole.new("headless")
    words = (
        "load",
        "tpcc",
        "-d",
        psycopg.conninfo.make_conninfo(**connection.arguments()),
        "-w",
        "2",
        "--hosts",
        "local:a,local:b",
    )
    head = children.started([sys.executable, "-m", "pgdyno", *words], text=True)
    ledger = "SELECT count(*) FROM pgdyno_load_progress WHERE step ~ '^copy'"

    def has_copied() -> bool:
        try:
            return run(connection, ledger) > [(0,)] or head.poll() is not None
        except psycopg.errors.UndefinedTable:
            return False

    until(has_copied, "copy")
    assert head.poll() is None
    head.kill()
    head.communicate()
    left_alone(connection)
    load_from_hosts(hosts(2), connection, SPEC, How(intent="drop_ours"), loaded_at_unix_s=LOADED_AT)
    require_the_same(whole, connection)


@pytest.mark.wide
@pytest.mark.parametrize("partitions", [{"by": "hash", "count": 3}, {"by": "range", "count": 2}])
def test_partitions_are_shared_out_too(whole: Whole, partitions: dict[str, Any]) -> None:
    connection = whole.new(f"parted_{partitions['by']}")
    spec = changed(SPEC, partitions=partitions)
    load_from_hosts(hosts(2), connection, spec, How(connections=4), loaded_at_unix_s=LOADED_AT)
    assert contents(connection) == whole.contents


@pytest.mark.wide
def test_warehouses_are_added_from_hosts(whole: Whole) -> None:
    grown, fewer = whole.new("grown"), changed(SPEC, warehouses=1)
    load_from_hosts(hosts(2), grown, fewer, How(connections=2), loaded_at_unix_s=LOADED_AT)
    report, _ = load_from_hosts(hosts(3), grown, SPEC, How(connections=3, intent="top_up"))
    assert report.units_before == 1
    require_the_same(whole, grown)


@pytest.mark.wide
def test_pgbenchs_tables_are_shared_out_too(whole: Whole) -> None:
    one, several = whole.new("branches_one"), whole.new("branches_several")
    load(one, tpcb(6), How(connections=2), loaded_at_unix_s=LOADED_AT)
    _, parts = load_from_hosts(hosts(3), several, tpcb(6), How(), loaded_at_unix_s=LOADED_AT)
    assert contents(several, PGBENCH) == contents(one, PGBENCH)
    assert all(part.report.rows > 100_000 for part in parts)


@pytest.mark.wide
def test_hosts_with_addresses_of_their_own_load_together(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with namespaces() as names, server_on_the_network() as (cluster, conninfo, password):
        monkeypatch.setenv("PGPASSWORD", password)
        run(cluster.connection(), "CREATE DATABASE shop")
        there = conninfo.replace("dbname=postgres", "dbname=shop")
        named = ",".join(f"netns:{name}" for name in names)
        words = ("load", "tpcc", "-d", there, "-w", "2", "-c", "4")

        done = pgdyno(*words, "--hosts", named, "--json")
        loaded = json.loads(done.stdout)
        log = cluster.log_text()
        # One that gets nowhere near the server is named, and nothing is made.
        run(cluster.connection(), "CREATE DATABASE far")
        local_only = there.replace("dbname=shop", "dbname=far").replace(
            conninfo.split()[0], "host=127.0.0.1"
        )
        refused = pgdyno("load", "tpcc", "-d", local_only, "-w", "1", "--hosts", named, code=4)
        made = run(cluster.connection().to("far"), "SELECT to_regclass('pgdyno_load') IS NULL")

    assert sum(one["rows"] for one in loaded["hosts"].values()) == loaded["rows"]
    assert list(loaded["hosts"]) == [f"netns:{name}" for name in names]
    for address in names.values():
        assert f"connection received: host={address}" in log
    assert "host netns:" in refused.stderr
    assert "connect to 127.0.0.1" in refused.stderr
    assert "Nothing was changed." in refused.stderr
    assert made == [(True,)]
    for said in (done.stdout, done.stderr, refused.stderr, log):
        assert password not in said
