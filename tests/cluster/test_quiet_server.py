"""A server that is not ours: nothing in its log has to be explained, and nothing there hinders us.

The role is no superuser; what the server itself does in databases of ours is not its to end.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import replace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.target import server_owner
from pgdyno.target.cluster import Cluster
from pgdyno.target.running_target import ask_server
from pgdyno.target.server_owner import Owner
from tests.cluster.conftest import OLD_VERSION_FIRST, cluster_apart
from tests.waiting import until

pytestmark = pytest.mark.cluster
NAME = "pgdyno_trial"
SLOW_VACUUM = """
CREATE TABLE filled WITH (autovacuum_vacuum_threshold = 1, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1)
AS SELECT i FROM generate_series(1, 100000) AS i;
DELETE FROM filled;
"""
WORKER = "SELECT pid FROM pg_stat_activity WHERE datname = %s AND usesysid IS NULL"


@pytest.fixture(scope="module", params=OLD_VERSION_FIRST)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Somebody else's server, reached over TCP by password."""
    with cluster_apart(request.param, "tcp") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Iterator[psycopg.Connection]:
    """Its administrator, who has a role without rights but to make databases."""
    administrator = cluster.measured_connection().to("postgres")
    with psycopg.connect(**administrator.arguments(), autocommit=True) as session:
        session.execute("CREATE ROLE engineer LOGIN CREATEDB PASSWORD 'measured'")
        session.execute("ALTER SYSTEM SET autovacuum_naptime = 1")
        session.execute("SELECT pg_reload_conf()")
        yield session


@pytest.fixture
def engineer(cluster: Cluster, server: psycopg.Connection) -> Iterator[Connection]:
    """The role; what a test sets for it is undone, and in the log there is no new complaint."""
    before = complaints(cluster)
    there = cluster.measured_connection().to("postgres")
    yield replace(there, user="engineer", password="measured")
    server.execute("ALTER ROLE engineer RESET ALL")
    assert complaints(cluster)[len(before) :] == []


def complaints(cluster: Cluster) -> list[str]:
    """What she would ask about; lines on autovacuum sent away are DROP DATABASE's own.

    So is that of a worker that was begun for a database that was dropped before it came: by its
    OID, as nobody else names one.
    """
    words = (" ERROR: ", " FATAL: ", " PANIC: ", " WARNING: ", " Broken pipe", " EOF on client")
    return [
        line for line in cluster.log_lines()
        if any(word in line for word in words) and "autovacuum process" not in line
        and not re.search(r" FATAL: +database \d+ does not exist$", line)
    ]  # fmt: skip


def test_a_worker_of_autovacuum_hinders_no_drop(
    server: psycopg.Connection, engineer: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_owner, "_LEAVING_S", 0.1)
    owner = Owner(engineer)
    owner.create(NAME)
    with psycopg.connect(**engineer.to(NAME).arguments(), autocommit=True) as session:
        session.execute(SLOW_VACUUM)
    until(lambda: server.execute(WORKER, (NAME,)).fetchone(), "autovacuum comes")

    owner.drop(NAME)

    assert owner.find(NAME) is None
    owner.release()


def test_sessions_that_are_about_to_go_are_not_ended(engineer: Connection) -> None:
    owner = Owner(engineer)
    owner.create(NAME)
    session = psycopg.connect(**engineer.to(NAME).arguments())
    leaves = threading.Timer(0.3, session.close)
    leaves.start()

    owner.drop(NAME)

    leaves.join()
    assert owner.find(NAME) is None
    owner.release()


def test_whoever_comes_second_leaves_no_line(
    engineer: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_owner, "_PATIENCE_S", 0.1)
    owner = Owner(engineer)

    with pytest.raises(TargetError, match="another pgdyno has the server"):
        Owner(engineer)

    owner.release()


def test_no_timeout_of_the_role_ends_the_claim(
    cluster: Cluster, server: psycopg.Connection, engineer: Connection
) -> None:
    administrator = cluster.measured_connection().to("postgres")
    server.execute("ALTER ROLE engineer SET statement_timeout = '1s'")
    owners: list[Owner] = []
    with psycopg.connect(**administrator.arguments()) as holder:
        holder.execute("LOCK TABLE pg_database IN SHARE MODE")
        claim = threading.Thread(target=lambda: owners.append(Owner(engineer)))
        claim.start()
        waits = (
            "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
            " AND clock_timestamp() - query_start > interval '1.5 s'"
        )
        until(lambda: server.execute(waits).fetchone() or not claim.is_alive(), "it waited")
    claim.join()

    assert len(owners) == 1
    owners[0].release()


def test_knocking_leaves_no_line_where_a_password_is_asked_for(
    engineer: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert engineer.password is not None
    conninfo = make_conninfo(**{**engineer.arguments(), "password": None})
    monkeypatch.setenv("PGPASSWORD", engineer.password)

    role = ask_server(conninfo, knocks=True).facts.role

    assert role is not None
    assert role.shut_out_of == ()
