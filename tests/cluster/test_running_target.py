"""A server that is not ours: only what can be set there is set, and only ours is dropped."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno.api import Run
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import TargetError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.run import Fixture
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.store.run_file import RunFile
from pgdyno.target.running_target import TRIAL, RunningTarget
from tests.cluster.conftest import OLD_VERSION_FIRST, cluster_apart
from tests.cluster.test_run import PLAN, pgdyno
from tests.data.workloads import tpcc

pytestmark = pytest.mark.cluster
ORIGIN = Origin(OriginKind.PLAN, "a test")
SMALL = tpcc()


@pytest.fixture(scope="module", params=OLD_VERSION_FIRST)
def foreign(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """Somebody else's server with somebody else's database, reached over TCP by password."""
    with cluster_apart(request.param, "tcp") as cluster:
        with psycopg.connect(**cluster.connection().arguments(), autocommit=True) as session:
            session.execute("CREATE DATABASE tpcc")
            session.execute("CREATE DATABASE shop")
        yield cluster.measured_connection().to("shop")


def conninfo(connection: Connection) -> str:
    return psycopg.conninfo.make_conninfo(**connection.arguments())


def databases(connection: Connection) -> set[str]:
    with psycopg.connect(**connection.arguments()) as session:
        rows = session.execute("SELECT datname FROM pg_database").fetchall()
    return {name for (name,) in rows}


def test_fixture_and_trial_live_in_databases_of_ours(foreign: Connection) -> None:
    before = databases(foreign)
    target = RunningTarget(conninfo(foreign))
    connection = target.begin_fixture("abc123")
    report = load(connection, SMALL, How(connections=2))
    target.keep_fixture(Fixture("abc123", FixtureShape(), 0, report, (), "", reused=False))

    restored = target.restore("abc123")
    ready = target.apply([Setting("synchronous_commit", "off", ORIGIN)])

    assert restored.method == "template database"
    assert ready.connection.database == TRIAL
    assert ready.postmaster_pid is None, "nobody may kill it"
    assert ready.seen_pid is not None
    assert b"postgres" in Path(f"/proc/{ready.seen_pid}/cmdline").read_bytes()
    values = {setting.name: setting.value for setting in ready.settings}
    assert values["synchronous_commit"] == "off"
    with psycopg.connect(**foreign.arguments()) as session:
        assert session.execute("SHOW synchronous_commit").fetchone() == ("on",)
    target.close()
    assert databases(foreign) - before == {"pgdyno_fixture_abc123"}
    again = RunningTarget(conninfo(foreign))
    found = again.find_fixture("abc123")
    assert found is not None
    assert found.data_bytes > 50 << 20
    again.close()


def test_a_database_that_is_not_ours_is_not_dropped(foreign: Connection) -> None:
    with psycopg.connect(**foreign.arguments(), autocommit=True) as session:
        session.execute(f"CREATE DATABASE {TRIAL}")
    target = RunningTarget(conninfo(foreign))
    try:
        with pytest.raises(TargetError, match=f"{TRIAL} exists and is not marked as ours"):
            target.restore("abc123")
    finally:
        target.close()
        assert TRIAL in databases(foreign)
        with psycopg.connect(**foreign.arguments(), autocommit=True) as session:
            session.execute(f"DROP DATABASE {TRIAL}")


def running_plan(folder: Path, foreign: Connection, stages: str) -> Path:
    head = PLAN.partition("[[stage]]")[0]
    public = {key: value for key, value in foreign.arguments().items() if key != "password"}
    shown = psycopg.conninfo.make_conninfo(**public)
    head = head.replace('kind = "embedded"', f'kind = "running"\nconninfo = "{shown}"')
    path = folder / "running.toml"
    path.write_text(head + stages)
    return path


def test_a_plan_on_a_running_server(
    folder: Path, foreign: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", foreign.password or "")
    stages = """
[[stage]]
name = "as-it-is"
why = "What is there."

[[stage]]
name = "async"
why = "The price of waiting for the disk."
settings = { synchronous_commit = "off" }
"""
    before = databases(foreign)
    out = folder / "run.sqlite"

    pgdyno("run", running_plan(folder, foreign, stages), "--set", "protocol.rounds=1",
           "--out", out)  # fmt: skip

    with RunFile.read(out) as run:
        assert len(run.finished()) == 2
        for trial in run.finished():
            assert trial.result is not None
            assert trial.result.durability is not None
            lost = {(loss.what, loss.layer) for loss in trial.result.durability.losses}
            # Settings of a stage are set on the trial's database, and found there.
            assert (("synchronous_commit = off", "database") in lost) == (trial.stage == "async")
            # It runs on this host, and its role sees all sessions: so its processes are seen.
            assert trial.result.deltas["process.backend.cpu_s"] > 0
            assert trial.result.deltas["process.backend.wait_cpu_s"] >= 0
        (fixture,) = run.fixtures()
        assert fixture.restore == "template database"
    assert foreign.password is not None
    assert foreign.password.encode() not in out.read_bytes()
    assert foreign.password not in out.with_suffix(".html").read_text()
    left = databases(foreign) - before
    assert all(name.startswith("pgdyno_fixture_") for name in left)


def test_what_needs_a_restart_is_refused_by_name(
    folder: Path, foreign: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", foreign.password or "")
    stages = """
[[stage]]
name = "more-memory"
why = "Not ours to restart."
settings = { shared_buffers = "1GB", max_wal_size = "4GB" }
"""
    before = databases(foreign)

    done = pgdyno("run", running_plan(folder, foreign, stages), code=2)

    assert "shared_buffers" in done.stderr
    assert "max_wal_size" in done.stderr
    assert databases(foreign) == before


def test_a_password_that_the_server_refuses_is_told_with_where_it_may_stand(
    folder: Path, foreign: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server does not say where it came from, and psql does."""
    monkeypatch.setenv("PGPASSWORD", "another")
    stage = '[[stage]]\nname = "as-it-is"\nwhy = "What is there."\n'

    done = pgdyno("run", running_plan(folder, foreign, stage), code=3)

    said = " ".join(done.stderr.split())
    assert "password authentication failed" in said
    places = (
        "pg_service.conf, else of PGPASSWORD, else of ~/.pgpass or the file that PGPASSFILE names"
    )
    assert f"{places}: correct it there" in said


@pytest.mark.wide
def test_the_report_shows_the_configuration_that_was_found(
    folder: Path, foreign: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", foreign.password or "")
    with psycopg.connect(**foreign.arguments(), autocommit=True) as session:
        session.execute("ALTER SYSTEM SET work_mem = '7MB'")
        session.execute("ALTER SYSTEM SET maintenance_work_mem = '37MB'")
        session.execute("ALTER SYSTEM SET primary_conninfo = 'host=up password=geheim'")
        session.execute("SELECT pg_reload_conf()")
    stages = '[[stage]]\nname = "as-it-is"\nwhy = "What is there."\n'
    out = folder / "found.sqlite"

    try:
        plan = running_plan(folder, foreign, stages)
        pgdyno("run", plan, "--set", "workload.warehouses=2", "--out", out)
    finally:
        with psycopg.connect(**foreign.arguments(), autocommit=True) as session:
            session.execute("ALTER SYSTEM RESET ALL")
            session.execute("SELECT pg_reload_conf()")

    facts = Run(out).facts
    found = {one.name: one for one in facts.configuration}
    assert found["work_mem"].value == "7MB"
    assert re.search(r"/postgresql\.auto\.conf:\d+$", found["work_mem"].source)
    assert {"shared_buffers", "max_connections", "max_wal_size"} <= set(found)
    assert "geheim" not in out.with_suffix(".html").read_text()
    assert b"geheim" not in out.read_bytes()
    assert facts.server["host"].startswith("this one")
    assert facts.server["databases"]
    with RunFile.read(out) as run:
        (fixture,) = run.fixtures()
    assert fixture.loaded is not None
    choices = {choice.name: choice.value for choice in fixture.loaded.choices}
    assert choices["maintenance_work_mem"] == "37 MiB", "no more than is set there"
    page = out.with_suffix(".html").read_text()
    assert "own configuration, which every stage builds on" in page
