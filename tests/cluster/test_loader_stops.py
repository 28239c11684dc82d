"""Loads that do not come to their end: killed, without their server, on a full disk."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno import core
from pgdyno.loader.copy import How, estimate, load
from pgdyno.loader.room import require_room
from pgdyno.loader.spec import load_spec
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, TargetError
from pgdyno.shell import postgres_user
from pgdyno.target.cluster import Cluster
from pgdyno.target.home import made_for
from pgdyno.target.server_host import server_host_of
from tests import children
from tests.cluster.conftest import VERSIONS, cluster_apart
from tests.cluster.loading import LOADED_AT, contents, keys, new_database, run
from tests.data.workloads import loading, tpcc
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
SPEC = tpcc(foreign_keys=True)
RESUME = How(connections=2, intent="resume")
ROOM_BYTES = 64 << 20
# Indexes are built while other tables are still copied: either may meet the end of the disk.
FULL_DISK = r"(copy|build) \w+: ERROR 53100: .*No space left"


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    with cluster_apart(request.param, "socket") as cluster:
        yield cluster


def copied(connection: Connection) -> int:
    """Copies that the ledger of a load under way holds."""
    try:
        rows = run(connection, "SELECT count(*) FROM pgdyno_load_progress WHERE step ~ '^copy'")
    except psycopg.errors.UndefinedTable:
        return 0
    return int(rows[0][0])


def begin(connection: Connection) -> subprocess.Popen[str]:
    """A loader of its own process, which has copied something when this returns."""
    command = loading(connection, SPEC, connections=2, copies="batches", loaded_at_unix_s=LOADED_AT)
    loader = children.started(command, text=True, stderr=subprocess.PIPE)
    until(lambda: copied(connection) >= 2 or loader.poll() is not None, "copy")
    assert loader.poll() is None, loader.communicate()
    return loader


@pytest.fixture(params=VERSIONS)
def mortal(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """A server that a test may kill, since no other test has it."""
    with cluster_apart(request.param, "socket") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def whole(cluster: Cluster) -> Connection:
    """The same load, undisturbed."""
    connection = new_database(cluster.connection(), "whole")
    load(connection, SPEC, How(connections=2), loaded_at_unix_s=LOADED_AT)
    return connection


@pytest.mark.wide
def test_a_killed_load_goes_on_without_loading_twice(cluster: Cluster, whole: Connection) -> None:
    connection = new_database(cluster.connection(), "killed")
    loader = begin(connection)
    loader.send_signal(signal.SIGKILL)
    loader.communicate()
    with pytest.raises(DriveError, match=r"has a load that did not end, \d+ steps of it are done"):
        load(connection, SPEC)
    done = copied(connection)
    report = load(connection, SPEC, RESUME)

    assert report.steps_done_before >= done >= 2
    assert contents(connection) == contents(whole)
    assert report.rows < sum(count for count, _ in contents(whole).values())
    assert keys(connection) == keys(whole)
    with pytest.raises(DriveError, match="is complete, there is nothing to resume"):
        load(connection, SPEC, RESUME)


def test_a_load_that_is_stopped_twice_ends(cluster: Cluster) -> None:
    """Whoever stops it again, as its end does, comes while the server is asked to cancel."""
    connection = new_database(cluster.connection(), "stopped_twice")
    how = How(connections=2, copies="batches")
    under_way = core.Load(json.dumps(load_spec(connection, SPEC, how, LOADED_AT)))
    under_way.start()
    until(lambda: json.loads(under_way.poll())["rows"] > 0, "copy")

    stops = [threading.Thread(target=under_way.stop, daemon=True) for _ in range(8)]
    for stop in stops:
        stop.start()
        time.sleep(0.001)
    for stop in stops:
        stop.join(DEADLINE_S)
        assert not stop.is_alive()
    with pytest.raises(core.CoreError, match="stopped in phase copy"):
        under_way.result()


@pytest.mark.wide
def test_a_load_survives_the_death_of_its_server(mortal: Cluster) -> None:
    undisturbed = new_database(mortal.connection(), "whole")
    load(undisturbed, SPEC, How(connections=2), loaded_at_unix_s=LOADED_AT)
    expected = contents(undisturbed), keys(undisturbed)
    connection = new_database(mortal.connection(), "died")
    loader = begin(connection)
    os.kill(mortal.pid, signal.SIGKILL)
    _, said = loader.communicate(timeout=DEADLINE_S)
    assert loader.returncode != 0
    # Whatever it did at that moment: it copies, builds indexes and vacuums side by side.
    assert "pgdyno.model.errors.DriveError: " in said
    mortal.stop(clean=False)

    def started() -> bool:
        try:  # its processes end by themselves, a little later
            mortal.start([])
        except TargetError:
            return False
        return True

    until(started, "start")
    load(connection, SPEC, RESUME)

    assert (contents(connection), keys(connection)) == expected


@pytest.fixture
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 64 MiB; making one takes root, as CI has it."""
    place = folder / "small"
    place.mkdir()
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={ROOM_BYTES}", "pgdyno-test", place], check=True
    )
    try:
        yield made_for(place / "tables", postgres_user())
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.fixture
def tablespace(cluster: Cluster, small_disk: Path) -> Iterator[Connection]:
    """A database on the small disk, gone before the disk is."""
    server = cluster.connection()
    run(server, f"CREATE TABLESPACE small LOCATION '{small_disk}'")
    try:
        yield new_database(server, "small", "TABLESPACE small")
    finally:
        run(server, "DROP DATABASE IF EXISTS small")
        run(server, "DROP TABLESPACE small")


def test_a_full_disk_is_foreseen_and_survived(
    tablespace: Connection, whole: Connection, small_disk: Path
) -> None:
    connection = tablespace
    place = server_host_of(connection)
    assert place.data is not None
    assert place.data.free_bytes < ROOM_BYTES
    refused = rf"the load needs 1\d\d MiB at {small_disk}, free are [456]\d.* MiB"
    with pytest.raises(TargetError, match=refused):
        require_room(estimate(connection, SPEC), place)
    assert run(connection, "SELECT count(*) FROM pg_class WHERE relname = 'stock'") == [(0,)]

    with pytest.raises(DriveError, match=FULL_DISK) as error:
        load(connection, SPEC, How(connections=2))
    hint = error.value.hint
    assert hint
    assert "The tables of the load remain in database small, incomplete" in hint
    assert run(whole, "SELECT count(*) FROM warehouse") == [(1,)], "others work on"
