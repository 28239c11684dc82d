"""What may be lost, read back from real servers: every layer that gives something up is named."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.model.connection import Connection
from pgdyno.model.durability import Durability
from pgdyno.model.workload import Pgbench, Workload
from pgdyno.shell import postgres_user
from pgdyno.target.durability import read_durability
from pgdyno.target.home import made_for
from pgdyno.target.storage_durability import storage_losses
from tests.cluster.conftest import VERSIONS, cluster_apart

pytestmark = pytest.mark.cluster
LOAD = Workload("tpcb", 1, pgbench=Pgbench(1))
MEMORY = Path("/dev/shm")


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Somebody's server with a database `shop` and the roles `hasty` and `plain`."""
    with cluster_apart(request.param, "socket") as cluster:
        statements(
            cluster.connection(),
            "CREATE DATABASE shop", "CREATE ROLE plain LOGIN", "CREATE ROLE hasty SUPERUSER LOGIN",
            "ALTER ROLE hasty SET synchronous_commit = off",
        )  # fmt: skip
        yield cluster.connection().to("shop")


def statements(connection: Connection, *texts: str) -> None:
    with psycopg.connect(**connection.arguments(), autocommit=True) as session:
        for text in texts:
            session.execute(text)


def read(connection: Connection, workload: Workload = LOAD) -> Durability:
    return read_durability([connection], workload)


def told(found: Durability) -> set[tuple[str, str, str]]:
    """Rung, what and layer of each; checksums are on or off by version."""
    return {
        (one.rung.value, one.what, one.layer)
        for one in found.losses
        if not one.what.startswith("data_checksums")
    }


def on_this_storage(connection: Connection) -> set[tuple[str, str, str]]:
    """What the storage of the test's own folder gives up already, on this machine."""
    with psycopg.connect(**connection.arguments()) as session:
        (data,) = session.execute("SHOW data_directory").fetchone() or ("",)
    return told(storage_losses(Path(data).resolve(), "data folder"))


def test_a_server_as_it_comes(server: Connection) -> None:
    assert told(read(server)) == on_this_storage(server)


def test_settings_of_role_database_and_session(server: Connection) -> None:
    plain = on_this_storage(server)
    hasty = replace(server, user="hasty")
    off = ("D2", "synchronous_commit = off")
    assert told(read(hasty)) - plain == {(*off, "role")}
    session = replace(server, parameters=(("options", "-c synchronous_commit=off"),))
    assert told(read(session)) - plain == {(*off, "session")}
    statements(server, "ALTER DATABASE shop SET synchronous_commit = off",
               "ALTER DATABASE shop SET ignore_checksum_failure = on")  # fmt: skip
    try:
        assert told(read(server)) - plain == {
            (*off, "database"), ("D4", "ignore_checksum_failure = on", "database")
        }  # fmt: skip
        (loss,) = [one for one in read(server).losses if one.what == off[1]]
        assert "database shop, user postgres; from database" in loss.source
    finally:
        statements(server, "ALTER DATABASE shop RESET ALL")
    assert told(read(server)) == plain


def test_tables_and_tablespaces(server: Connection) -> None:
    plain = on_this_storage(server)
    memory = Path(tempfile.mkdtemp(prefix="pgdyno-space-", dir=MEMORY))
    try:
        memory.chmod(0o755)
        space = made_for(memory / "space", postgres_user())
        statements(server, "CREATE UNLOGGED TABLE basket (i int PRIMARY KEY)",
                   f"CREATE TABLESPACE quick LOCATION '{space}'")  # fmt: skip
        assert told(read(server)) - plain == {
            ("D6", "unlogged tables: basket", "tables"),
            ("D6", f"tablespace {space} in memory (tmpfs)", "file system"),
        }
    finally:
        statements(server, "DROP TABLE IF EXISTS basket", "DROP TABLESPACE IF EXISTS quick")
        shutil.rmtree(memory)


def test_standbys_that_are_not_there(server: Connection) -> None:
    plain = on_this_storage(server)
    local = replace(server, parameters=(("options", "-c synchronous_commit=local"),))
    statements(local, "ALTER SYSTEM SET synchronous_standby_names = 'far'",
               "SELECT pg_reload_conf()")  # fmt: skip
    try:
        assert {what for _, what, _ in told(read(local)) - plain} == {
            "synchronous_commit = local, with synchronous_standby_names = far"
        }
        assert {(rung, what) for rung, what, _ in told(read(server)) - plain} == {
            ("D2", "synchronous_standby_names = far, and no such standby is connected")
        }
    finally:
        statements(local, "ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")


def test_what_a_role_may_not_see_is_not_known_and_never_d0(server: Connection) -> None:
    found = read(replace(server, user="plain"))
    assert found.rung is None
    assert any("plain may not read where it is" in text for text in found.not_known)


def test_a_cluster_in_memory() -> None:
    memory = Path(tempfile.mkdtemp(prefix="pgdyno-memory-", dir=MEMORY))
    try:
        (loss,) = storage_losses(memory.resolve(), "data folder").losses
        assert loss.rung.value == "D6"
    finally:
        shutil.rmtree(memory)
