"""PgBouncer between driver and server, with another session of the server for each transaction.

Debian's 1.18 does not follow the names of prepared statements.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno import _core
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.shell import postgres_user, start
from pgdyno.target.conninfo import reach, resolve
from pgdyno.target.home import made_for
from tests.cluster.conftest import cluster_apart
from tests.reachable import reachable_folder
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
CLIENTS = 8
SERVERS = 2
SCRIPT = """
\\set n random(1, 100)
BEGIN;
UPDATE counters SET value = value + 1 WHERE id = :n;
INSERT INTO notes VALUES (:n, pg_backend_pid());
END;
"""


@pytest.fixture(scope="module")
def server() -> Iterator[Connection]:
    with cluster_apart("embedded-18", "socket") as cluster:
        yield cluster.connection()


@pytest.fixture(scope="module")
def pooled(server: Connection) -> Iterator[str]:
    """Conninfo of a pooler with fewer sessions than it has clients."""
    user = postgres_user()
    for folder in reachable_folder("pooler"):
        own = made_for(folder / "own", user)
        config = own / "pgbouncer.ini"
        config.write_text(
            f"[databases]\n* = host={server.host} port={server.port} user={server.user}\n"
            f"[pgbouncer]\nunix_socket_dir = {own}\nlisten_port = 6432\nauth_type = any\n"
            f"pool_mode = transaction\ndefault_pool_size = {SERVERS}\n"
        )
        log = folder / "pgbouncer.log"
        with log.open("w") as opened:
            process = start(
                ["/usr/sbin/pgbouncer", config], user=user, log=opened.fileno(),
                dies_with_us=signal.SIGTERM,
            )  # fmt: skip
        conninfo = f"host={own} port=6432 user={server.user} dbname=postgres"
        wait_for(conninfo, log)
        yield conninfo
        process.signal(signal.SIGTERM)
        assert process.wait(DEADLINE_S) is not None


def wait_for(conninfo: str, log: Path) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:
            psycopg.connect(conninfo).close()
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)
        else:
            return


def drive(connection: Connection) -> dict[str, Any]:
    spec = {
        "version": 1,
        "workload": {"kind": "script", "scripts": [{"name": "count", "text": SCRIPT}]},
        "connection": connection.spec(),
        "connections": CLIENTS, "terminals": CLIENTS, "threads": 2,
        "warmup_s": 0.0, "window_s": 1.0, "drain_s": 5.0, "allow_debug": True,
    }  # fmt: skip
    driver = _core.Drive(json.dumps(spec))
    driver.start()
    return json.loads(driver.result())


@pytest.fixture
def tables(server: Connection) -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(**server.arguments(), autocommit=True) as session:
        session.execute("DROP TABLE IF EXISTS counters, notes")
        session.execute(
            "CREATE TABLE counters AS SELECT id, 0 value FROM generate_series(1,100) id"
        )
        session.execute("CREATE TABLE notes (id int, pid int)")
        yield session


def test_many_clients_share_few_sessions(pooled: str, tables: psycopg.Connection[Any]) -> None:
    connection = reach(pooled)
    assert connection.prepare == "unnamed"

    result = drive(connection)

    assert result["outcome"] == "complete"
    assert not result["errors"]
    committed = sum(kind["run"]["succeeded"] for kind in result["kinds"])
    row = tables.execute("SELECT count(*), count(DISTINCT pid) FROM notes").fetchone()
    assert row is not None
    assert row[0] == committed > CLIENTS
    assert row[1] <= SERVERS < CLIENTS
    assert tables.execute("SELECT sum(value) FROM counters").fetchone() == (committed,)


def test_names_of_statements_do_not_work_and_the_hint_says_so(
    pooled: str, tables: psycopg.Connection[Any]
) -> None:
    connection = replace(reach(pooled), prepare="named")

    with pytest.raises(_core.CoreError) as caught:
        drive(connection)

    _kind, fact, hint = caught.value.args
    assert "42P05" in fact or "26000" in fact
    assert "prepare = unnamed" in hint
    # Sessions of the server outlive their clients here: leave them without names.
    pids = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
    tables.execute(pids + " AND backend_type = 'client backend'")


def test_settings_that_the_pooler_does_not_pass_on_are_named(pooled: str) -> None:
    conninfo = f"{pooled} options='-c work_mem=8MB'"
    with pytest.raises(TargetError, match="unsupported startup parameter: options"):
        reach(conninfo)
    with pytest.raises(_core.CoreError) as caught:
        drive(resolve(conninfo))
    assert "ignore_startup_parameters" in caught.value.args[2]


def test_without_a_pooler_statements_keep_their_names(server: Connection) -> None:
    conninfo = f"host={server.host} port={server.port} user={server.user} dbname=postgres"
    assert reach(conninfo).prepare == "named"


def test_several_poolers_and_servers_may_stand_in_one_list(
    pooled: str, server: Connection, tables: psycopg.Connection[Any]
) -> None:
    connection = reach(f"{pooled} target_session_attrs=read-write")
    there = replace(connection, others=server.hosts, parameters=connection.parameters)
    assert drive(there)["outcome"] == "complete"
    assert tables.execute("SELECT count(*) > 0 FROM notes").fetchone() == (True,)
