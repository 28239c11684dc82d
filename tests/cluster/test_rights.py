"""A role that is no superuser, on a server that is not ours: what it lacks is known before a run.

The GRANTs are those that a dry run prints, given to psql as they stand there.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgdyno.loader.consistency import check
from pgdyno.model.connection import Connection
from pgdyno.model.description import ConditionSql
from pgdyno.store.run_file import RunFile
from pgdyno.target.cluster import Cluster
from pgdyno.target.running_target import TRIAL, ask_server
from pgdyno.target.server_host import postmaster_here
from pgdyno.target.server_owner import LIMIT
from tests.cluster.conftest import DEBIAN_BINDIR, OLD_VERSION_FIRST, cluster_apart
from tests.cluster.test_run import pgdyno

pytestmark = pytest.mark.cluster
ROLE = "engineer"
PASSWORD = "measured"
PLAN = """
name = "least"
question = "Does a role without rights find out before it loads?"

[target]
kind = "running"
conninfo = "CONNINFO"

[workload]
kind = "tpcb"
scale = 1
connections = 2

[protocol]
rounds = 2
warmup_s = 0.5
window_s = 1

[[stage]]
name = "as-it-is"
why = "What is there."

[[stage]]
name = "timed"
why = "A setting of superusers, which can be granted."
settings = { track_io_timing = "on" }
"""
BARE = ("--set", "protocol.prewarm=false", "--set", "protocol.checkpoint_before=false",
        "--set", "stage.timed.skip=true")  # fmt: skip


@pytest.fixture(scope="module", params=OLD_VERSION_FIRST)
def cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Somebody else's server."""
    with cluster_apart(request.param, "tcp") as cluster:
        yield cluster


@pytest.fixture(scope="module")
def server(cluster: Cluster) -> Connection:
    """Its administrator; beside her there is a role that may do nothing but connect."""
    administrator = cluster.measured_connection().to("postgres")
    with psycopg.connect(**administrator.arguments(), autocommit=True) as session:
        session.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}'")
    return administrator


@pytest.fixture
def engineer(server: Connection) -> Iterator[Connection]:
    """The role, which may create databases; what a test does to it is undone."""
    administer(server, f"ALTER ROLE {ROLE} CREATEDB;")
    yield replace(server, user=ROLE, password=PASSWORD)
    administer(server, f"ALTER ROLE {ROLE} RESET ALL; ALTER ROLE {ROLE} CONNECTION LIMIT -1;")


@pytest.fixture
def plan(folder: Path, server: Connection, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    monkeypatch.setenv("PGDYNO_HOME", str(folder / "home"))
    path = folder / "least.toml"
    where = f"host={server.host} port={server.port} user={ROLE} dbname=postgres"
    path.write_text(PLAN.replace("CONNINFO", where))
    return path


def administer(server: Connection, script: str) -> None:
    """Give a script to psql, as the administrator would."""
    env = {**os.environ, "PGPASSWORD": server.password or ""}
    subprocess.run(
        [f"{DEBIAN_BINDIR}/psql", "-qX", "-v", "ON_ERROR_STOP=1", "-h", server.host,
         "-p", str(server.port), "-U", server.user, "-d", "postgres"],
        input=script, text=True, env=env, check=True,
    )  # fmt: skip


def databases(server: Connection) -> set[str]:
    with psycopg.connect(**server.arguments()) as session:
        return {name for (name,) in session.execute("SELECT datname FROM pg_database")}


def grants_of(preview: str) -> str:
    """The lines that a dry run prints for psql."""
    after = preview.partition("with psql:\n")[2].partition("\nNotes\n")[0]
    assert after, preview
    return after


def test_rights_are_known_before_anything_is_made(plan: Path, server: Connection) -> None:
    before = databases(server)

    preview = pgdyno("run", plan, "--dry-run", code=2)
    refused = pgdyno("run", plan, "--out", plan.parent / "least.sqlite", code=2)

    missing = ("create databases", "create pg_prewarm", "make a checkpoint", "set track_io_timing")
    for what in missing:
        assert f"missing   {what}" in preview.stdout
        assert f"role {ROLE}: may not {what}" in refused.stderr
        assert f"role {ROLE}: may not {what}" in preview.stderr
    assert "optional  read all settings" in preview.stdout
    assert "optional  read what other sessions do" in preview.stdout
    assert databases(server) == before
    assert not (plan.parent / "least.sqlite").exists()


@pytest.mark.parametrize(
    ("given", "undone"),
    [
        (f"ALTER ROLE {ROLE} SET search_path = app;", ""),
        pytest.param(
            "ALTER ROLE ALL SET search_path = app;"
            " ALTER DATABASE postgres SET search_path = public;",
            "ALTER ROLE ALL RESET search_path; ALTER DATABASE postgres RESET search_path;",
            marks=pytest.mark.long),
        ("\\c template1\nREVOKE ALL ON SCHEMA public FROM PUBLIC; ALTER SCHEMA public OWNER TO"
         " CURRENT_USER;",
         "\\c template1\nALTER SCHEMA public OWNER TO pg_database_owner; GRANT USAGE ON SCHEMA"
         " public TO PUBLIC;"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("engineer")
@pytest.mark.wide
def test_a_place_for_tables_is_asked_for_before_anything_is_made(
    plan: Path, server: Connection, given: str, undone: str
) -> None:
    before = databases(server)
    administer(server, given)
    try:
        preview = pgdyno("run", plan, *BARE, "--dry-run", code=2)
        refused = pgdyno("run", plan, *BARE, "--out", plan.parent / "least.sqlite", code=2)
        assert re.search("missing +create tables in ", preview.stdout)
        assert f"role {ROLE}: may not create tables in " in refused.stderr
        assert databases(server) == before

        administer(server, grants_of(preview.stdout))
        pgdyno("run", plan, *BARE, "--out", plan.parent / "least.sqlite")
    finally:
        administer(server, undone)


@pytest.mark.wide
def test_what_may_be_left_out_needs_no_right(plan: Path, server: Connection) -> None:
    administer(server, f"ALTER ROLE {ROLE} CREATEDB; REVOKE pg_monitor FROM {ROLE};")
    out = plan.parent / "bare.sqlite"

    pgdyno("run", plan, *BARE, "--out", out)

    pgdyno("report", out, "--format", "md", "--out", plan.parent / "bare.md")
    text = (plan.parent / "bare.md").read_text()
    assert "no CHECKPOINT before the load" in text
    assert f"| sessions of others | the role {ROLE} may not read what other roles" in text
    assert f"| `GRANT pg_monitor TO {ROLE};` | all |" in text
    with RunFile.read(out) as run:
        assert len(run.finished()) == 2


@pytest.mark.wide
def test_the_printed_grants_are_enough(plan: Path, server: Connection) -> None:
    administer(server, f"ALTER ROLE {ROLE} NOCREATEDB;")
    pgdyno("run", plan, *BARE, "--out", plan.parent / "no.sqlite", code=2)
    administer(server, grants_of(pgdyno("run", plan, "--dry-run", code=2).stdout))
    out = plan.parent / "granted.sqlite"

    preview = pgdyno("run", plan, "--dry-run").stdout
    pgdyno("run", plan, "--out", out)

    assert "missing" not in preview
    assert "optional" not in preview
    with RunFile.read(out) as run:
        assert len(run.finished()) == 4


def test_a_database_without_an_encoding_can_be_asked(server: Connection) -> None:
    with psycopg.connect(**server.arguments(), autocommit=True) as session:
        session.execute("CREATE DATABASE plain ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    where = make_conninfo(**server.to("plain").arguments())

    facts = ask_server(where).facts

    assert "shared_buffers" in facts.knobs


@pytest.mark.long
def test_what_another_role_loaded_is_not_taken(
    plan: Path, server: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    administer(server, f"ALTER ROLE {ROLE} CREATEDB;")
    where = f"host={server.host} port={server.port} user={server.user} dbname=postgres"
    monkeypatch.setenv("PGPASSWORD", server.password or "")
    other = (*BARE, "--set", "workload.scale=2")  # data that no other test has loaded
    pgdyno("run", plan, "--conninfo", where, *other, "--out", plan.parent / "first.sqlite")
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    before = databases(server)
    out = plan.parent / "second.sqlite"

    pgdyno("run", plan, *other, "--out", out)

    with RunFile.read(out) as run:
        assert len(run.finished()) == 2
    assert {name for name in databases(server) - before if name.endswith("_2")}


@pytest.mark.wide
def test_a_trial_of_another_role_in_the_way_is_named(plan: Path, server: Connection) -> None:
    administer(server, f"ALTER ROLE {ROLE} CREATEDB;")
    administer(server, f"CREATE DATABASE {TRIAL} CONNECTION LIMIT {LIMIT};")
    try:
        refused = pgdyno("run", plan, *BARE, "--out", plan.parent / "no.sqlite", code=3)
    finally:
        administer(server, f"DROP DATABASE {TRIAL};")
    assert f"database {TRIAL} was left by a run of role {server.user}" in refused.stderr


def test_processes_are_seen_by_whom_all_sessions_are_shown(
    server: Connection, engineer: Connection
) -> None:
    administer(server, f"REVOKE pg_monitor FROM {ROLE};")
    assert postmaster_here(engineer) is None
    administer(server, f"GRANT pg_monitor TO {ROLE};")
    try:
        assert postmaster_here(engineer) == postmaster_here(server) is not None
    finally:
        administer(server, f"REVOKE pg_monitor FROM {ROLE};")


def test_sessions_of_others_are_seen_without_rights(
    server: Connection, engineer: Connection
) -> None:
    with psycopg.connect(**{**server.arguments(), "application_name": "shop"}):
        about = ask_server(make_conninfo(**engineer.arguments())).facts.about
    assert about["sessions of others"] == "1"


@pytest.mark.wide
def test_what_comes_before_a_stage_is_refused_before_anything_is_loaded(
    plan: Path, server: Connection, engineer: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    administer(server, f"ALTER ROLE {ROLE} SET work_mem = '3MB';")
    sets = (*BARE, "--set", "stage.as-it-is.settings.work_mem=5MB")
    before = databases(server)

    by_role = pgdyno("run", plan, *sets, "--out", plan.parent / "no.sqlite", code=2)
    monkeypatch.setenv("PGOPTIONS", "-c work_mem=4MB")
    by_options = pgdyno("run", plan, *sets, "--out", plan.parent / "no.sqlite", code=2)

    told = " ".join(by_role.stderr.split())
    assert f"work_mem = 5MB: role {ROLE} has 3MB" in told
    assert f"ALTER ROLE {ROLE} RESET work_mem" in told
    assert "the connection's options say 4MB" in " ".join(by_options.stderr.split())
    assert databases(server) == before


def test_a_check_takes_what_is_set_and_no_timeout_ends_it(engineer: Connection) -> None:
    hurried = replace(
        engineer, parameters=(("options", "-c work_mem=3MB -c statement_timeout=1h"),)
    )
    asked = "SELECT current_setting('work_mem'), current_setting('statement_timeout')"

    (found,) = check(hurried, [ConditionSql(1, "what is set", asked)])
    (roomy,) = check(hurried, [ConditionSql(1, "what is set", asked)], work_mem="5MB")

    assert (found.sample, roomy.sample) == ("('3MB', '0')", "('5MB', '0')")


@pytest.mark.wide
def test_too_few_sessions_are_refused_before_anything_is_made(
    plan: Path, server: Connection, engineer: Connection
) -> None:
    administer(server, f"ALTER ROLE {ROLE} CONNECTION LIMIT 4;")
    few = pgdyno("run", plan, *BARE, "--dry-run", code=2)
    administer(server, grants_of(few.stdout))
    enough = pgdyno("run", plan, *BARE, "--dry-run")
    administer(server, f"ALTER ROLE {ROLE} CONNECTION LIMIT -1;")
    with psycopg.connect(**server.arguments()):  # one of the 97 that are not reserved
        many = pgdyno("run", plan, *BARE, "--set", "workload.connections=94", "--dry-run", code=2)

    assert "may not have 5 sessions at once, but 4" in " ".join(few.stderr.split())
    assert "missing" not in enough.stdout
    assert "may not take 97 sessions, as the server has 96 left" in " ".join(many.stderr.split())


@pytest.mark.wide
def test_a_closed_door_is_known_before_anything_is_made(
    plan: Path, cluster: Cluster, server: Connection, engineer: Connection
) -> None:
    hba = cluster.data / "pg_hba.conf"
    before = hba.read_text()
    door = f"host postgres {ROLE} 127.0.0.1/32 scram-sha-256\nhost all {ROLE} all reject\n"
    try:
        hba.write_text(door + before)
        administer(server, "SELECT pg_reload_conf();")
        there = databases(server)
        refused = pgdyno("run", plan, *BARE, code=2)
        preview = pgdyno("run", plan, "--dry-run", code=2)
    finally:
        hba.write_text(before)
        administer(server, "SELECT pg_reload_conf();")

    told = " ".join(preview.stdout.split())
    assert f"not known create pg_prewarm: {ROLE} may not look into template1" in told
    assert "CREATE EXTENSION IF NOT EXISTS pg_prewarm;" in grants_of(preview.stdout)
    assert "pg_prewarm" not in preview.stderr
    assert "may not enter databases pgdyno_owner, pgdyno_trial and pgdyno_fixture_0" in " ".join(
        refused.stderr.split()
    )
    assert "pg_hba.conf" in refused.stderr
    assert databases(server) == there
