"""`pgdyno guard check` on real pairs: every refusal by its name, with the documented rights."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from pgdyno import GuardLimits
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.guard import Finding
from pgdyno.model.settings import Origin, OriginKind, Setting
from pgdyno.shell import postgres_user, run
from pgdyno.target.cluster import SUPERUSER, Cluster
from tests.cluster.conftest import cluster_apart
from tests.cluster.guarded import (
    ACCEPTED,
    AT_ONCE,
    LIMITS,
    ROLE,
    Guarded,
    execute,
    pair,
    value,
)
from tests.waiting import until

pytestmark = pytest.mark.cluster
VERSIONS = ("embedded-18", pytest.param("debian-15", marks=pytest.mark.long))


@pytest.fixture(scope="module", params=VERSIONS)
def guarded(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    with pair(request.param) as found:
        yield found


def refused(guarded: Guarded, limits: GuardLimits = LIMITS, **others: str) -> dict[str, Finding]:
    checked = guarded.guard(limits, **others).check(ACCEPTED)
    return {one.name: one for one in checked.refused}


def until_refused(guarded: Guarded, name: str) -> Finding:
    found: dict[str, Finding] = {}

    def look() -> bool:
        found.update(refused(guarded))
        return name in found

    until(look, name)
    return found[name]


def until_allowed(guarded: Guarded) -> None:
    """A standby takes a moment for all."""
    until(lambda: not refused(guarded), "all conditions hold")


def test_a_pair_as_it_should_be_is_allowed_once_its_power_is_accepted(guarded: Guarded) -> None:
    until_allowed(guarded)
    checked = guarded.guard().check()

    assert [one.name for one in checked.refused] == ["separate-power"]
    power = checked.refused[0]
    assert power.may_be_accepted
    assert "this machine" in power.found
    assert {one.name for one in checked.findings} >= {
        "same-system", "standby-role", "same-timeline", "wal-level", "fsync-primary",
        "fsync-standby", "checksums", "checkpoint-timeout", "full-page-writes", "streaming", "slot",
        "replay", "apply-delay", "lag", "restartpoint", "resource-managers", "access-methods",
        "unlogged", "databases-seen", "tablespaces", "rights-primary", "rights-standby",
        "configuration-file", "run-folder",
    }  # fmt: skip
    with pytest.raises(PlanError, match="of no condition that may be accepted: fsync"):
        guarded.guard().check(["fsync"])
    assert not list(guarded.run_folder.iterdir()), "check changes nothing"
    if postgres_user().name == SUPERUSER:  # who comes by the pid file comes as the server's user
        by_pid_file = guarded.guard(primary="").check(ACCEPTED)
        assert by_pid_file.allowed, by_pid_file.refused
        assert f"user={SUPERUSER}" in by_pid_file.primary


def test_the_command_tells_the_same_to_people_and_programs(guarded: Guarded) -> None:
    until_allowed(guarded)
    words = [
        sys.executable, "-m", "pgdyno", "guard", "check", str(guarded.data),
        "--standby", guarded.conninfo(guarded.standby.cluster) + " password=secret",
        "--primary", guarded.conninfo(guarded.primary), "--run-folder", str(guarded.run_folder),
    ]  # fmt: skip
    shown = subprocess.run(words, capture_output=True, text=True, check=False)
    assert shown.returncode == 1, shown.stderr
    assert "--accept separate-power" in shown.stdout
    assert "secret" not in shown.stdout + shown.stderr
    assert "restart_after_crash is on" in shown.stdout
    told = subprocess.run(
        [*words, "--json", "--accept", "separate-power"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert found["allowed"] is True
    assert {one["accepted"] for one in found["findings"] if one["name"] == "separate-power"} == {
        True
    }
    assert "secret" not in told.stdout


# What is done, and what undoes it; where; what is refused then.
SETTINGS: tuple[tuple[str, str, str, str], ...] = (
    ("primary", "checkpoint_timeout = '30min'", "checkpoint-timeout", "1800 s"),
    ("primary", "fsync = off", "fsync-primary", "off"),
    ("standby", "fsync = off", "fsync-standby", "off"),
    ("standby", "recovery_min_apply_delay = '1h'", "apply-delay", "3600000 ms"),
    ("primary", "full_page_writes = on", "full-page-writes", "postgresql.auto.conf"),
)


@pytest.mark.wide
@pytest.mark.parametrize(("where", "setting", "name", "found"), SETTINGS)
def test_a_setting_that_speaks_against_it_is_named(
    guarded: Guarded, where: str, setting: str, name: str, found: str
) -> None:
    cluster = guarded.primary if where == "primary" else guarded.standby.cluster
    parameter = setting.split(" ", maxsplit=1)[0]
    execute(cluster, f"ALTER SYSTEM SET {setting};\nSELECT pg_reload_conf()")
    try:
        finding = until_refused(guarded, name)
        assert found in finding.found
        assert finding.change
    finally:
        execute(cluster, f"ALTER SYSTEM RESET {parameter};\nSELECT pg_reload_conf()")
    until_allowed(guarded)


@pytest.mark.wide
def test_unlogged_relations_and_closed_databases_are_named(guarded: Guarded) -> None:
    execute(guarded.primary, "CREATE UNLOGGED TABLE gone (i int);\nCREATE DATABASE closed;\n"
            "ALTER DATABASE closed ALLOW_CONNECTIONS false")  # fmt: skip
    try:
        found = refused(guarded)
        assert "postgres.public.gone" in found["unlogged"].found
        assert "closed" in found["databases-seen"].found
        names = [*ACCEPTED, "unlogged", "databases-seen"]
        assert guarded.guard().check(names).allowed
    finally:
        execute(guarded.primary, "DROP TABLE gone;\nDROP DATABASE closed")


def test_names_that_are_no_text_end_nothing(guarded: Guarded) -> None:
    """A database without an encoding has them, and whoever enters it names others so."""
    execute(guarded.primary, "CREATE DATABASE raw ENCODING SQL_ASCII LOCALE 'C' TEMPLATE template0")
    raw = guarded.primary.connection().to("raw").arguments() | {"client_encoding": "SQL_ASCII"}
    try:
        with psycopg.connect(**raw, autocommit=True) as session:
            session.execute(b'CREATE UNLOGGED TABLE "caf\xe9" (i int)')
            session.execute(b'CREATE DATABASE "caf\xe9"')
        found = refused(guarded)["databases-seen"].found
        assert r"caf\xe9 (" in found
        assert "raw (invalid byte sequence" in found
    finally:
        with psycopg.connect(**raw, autocommit=True) as session:
            session.execute(b'DROP DATABASE IF EXISTS "caf\xe9"')
        execute(guarded.primary, "DROP DATABASE raw")


def test_an_access_method_that_nobody_knows_is_refused(guarded: Guarded) -> None:
    until_allowed(guarded)
    execute(
        guarded.primary,
        "CREATE ACCESS METHOD strange TYPE INDEX HANDLER bthandler;\n"
        "CREATE DATABASE other;\n"
        "CREATE EXTENSION IF NOT EXISTS bloom",
    )
    try:
        found = refused(guarded)
        assert found["access-methods"].found == "postgres.strange"
        assert not found["access-methods"].may_be_accepted
    finally:
        execute(guarded.primary, "DROP ACCESS METHOD strange;\nDROP DATABASE other;\n"
                "DROP EXTENSION bloom")  # fmt: skip
    until_allowed(guarded)


def test_replay_that_is_paused_and_lag_are_named(guarded: Guarded) -> None:
    until_allowed(guarded)
    execute(guarded.standby.cluster, "SELECT pg_wal_replay_pause()")
    try:
        assert until_refused(guarded, "replay").found == "paused"
        execute(guarded.primary, "CREATE TABLE load AS SELECT generate_series(1, 50000) AS i")
        small = GuardLimits(lag_bytes=1 << 20, silence_s=LIMITS.silence_s)
        assert "MiB" in refused(guarded, small)["lag"].found
    finally:
        execute(guarded.standby.cluster, "SELECT pg_wal_replay_resume()")
        execute(guarded.primary, "DROP TABLE IF EXISTS load")
    until_allowed(guarded)


@pytest.mark.wide
def test_each_right_that_is_missing_is_named(guarded: Guarded) -> None:
    until_allowed(guarded)
    right = "EXECUTE ON FUNCTION pg_stat_file(text, boolean)"
    execute(guarded.primary, f"REVOKE {right} FROM {ROLE}")
    try:
        assert "pg_stat_file(text,boolean)" in until_refused(guarded, "rights-standby").found
    finally:
        execute(guarded.primary, f"GRANT {right} TO {ROLE}")
    until_allowed(guarded)


def test_a_standby_that_uses_no_slot_or_is_gone_is_named(guarded: Guarded) -> None:
    standby = guarded.standby
    standby.stop(clean=True)
    assert "No such file" in refused(guarded)["standby-answers"].found
    slot = value(guarded.primary, "SELECT active FROM pg_replication_slots")
    assert slot == "False"
    standby.start(AT_ONCE)
    execute(standby.cluster, "ALTER SYSTEM SET primary_slot_name = '';\nSELECT pg_reload_conf()")
    try:
        assert "uses none" in until_refused(guarded, "slot").found
    finally:
        execute(standby.cluster, "ALTER SYSTEM RESET primary_slot_name;\nSELECT pg_reload_conf()")
    until_allowed(guarded)


@pytest.mark.wide
def test_a_recovery_target_of_the_standby_is_named(guarded: Guarded) -> None:
    until_allowed(guarded)
    standby = guarded.standby
    standby.stop(clean=True)
    target = Setting("recovery_target_lsn", "FF/0", Origin(OriginKind.PLAN, "a test"))
    standby.start([*AT_ONCE, target])
    try:
        finding = until_refused(guarded, "recovery-target")
        assert finding.found == "recovery_target_lsn = FF/0"
        assert "Take recovery_target_lsn out" in finding.change
        assert not finding.may_be_accepted
    finally:
        standby.stop(clean=True)
        standby.start(AT_ONCE)
    until_allowed(guarded)


@pytest.mark.wide
def test_files_that_cannot_serve_are_named(guarded: Guarded, tmp_path: Path) -> None:
    until_allowed(guarded)
    on_disk = guarded.guard()
    on_disk._run_folder = tmp_path
    found = {one.name: one for one in on_disk.check(ACCEPTED).refused}
    assert "ext" in found["run-folder"].found or "overlay" in found["run-folder"].found
    configuration = guarded.data / "postgresql.conf"
    moved = configuration.with_name("moved.conf")
    configuration.rename(moved)
    configuration.symlink_to(moved)
    try:
        assert refused(guarded)["configuration-file"].change
    finally:
        configuration.unlink()
        moved.rename(configuration)


@pytest.mark.wide
def test_a_second_configuration_in_the_data_is_named(guarded: Guarded) -> None:
    """As initdb leaves one where the server is then started with a config_file elsewhere."""
    until_allowed(guarded)
    data, user, pg_ctl = guarded.data, postgres_user(), guarded.binaries.program("pg_ctl")
    elsewhere = data.parent / "etc"
    elsewhere.mkdir()
    conf = elsewhere / "postgresql.conf"
    conf.write_text(
        f"include '{data}/postgresql.conf'\ndata_directory = '{data}'\n"
        f"hba_file = '{data}/pg_hba.conf'\nident_file = '{data}/pg_ident.conf'\n"
    )
    for one in (elsewhere, conf):
        shutil.chown(one, user.uid, user.gid)
    guarded.primary.stop(clean=True)
    try:
        run([pg_ctl, "-D", data, "-o", f"-c config_file={conf}", "-w", "-l", elsewhere / "log",
             "start"], user=user)  # fmt: skip
        finding = until_refused(guarded, "one-configuration")
        assert finding.found == f"{data}/postgresql.conf does not include it"
        assert f"Remove {data}/postgresql.conf, or let it be the line include" in finding.change
        assert not finding.may_be_accepted
    finally:
        guarded.pg_ctl("stop")
        guarded.primary.start([])
    until_allowed(guarded)


@pytest.mark.wide
def test_a_server_of_another_system_is_no_standby(guarded: Guarded) -> None:
    with cluster_apart("embedded-18", "socket") as stranger:
        found = refused(guarded, standby=stranger_conninfo(stranger))
    assert {"same-system", "standby-role", "streaming"} <= set(found)
    wrong = refused(guarded, primary=guarded.conninfo(guarded.standby.cluster))
    assert {"primary-role", "primary-data"} <= set(wrong)


def stranger_conninfo(cluster: Cluster) -> str:
    at = cluster.connection()
    return f"host={at.host} port={at.port} user={at.user} dbname=postgres"


def test_what_is_no_data_directory_is_refused(guarded: Guarded, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "pgdyno", "guard", "status", str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 3
    assert "is no data directory" in done.stderr
    with pytest.raises(PlanError, match="no standby is named"):
        guarded.guard(standby="").check()
    with pytest.raises(PlanError, match="conninfo is not understood"):
        guarded.guard(standby="password=x=y host").check()
    with pytest.raises(TargetError, match="is not armed"):
        guarded.guard().disarm()


@pytest.mark.wide
@pytest.mark.parametrize("name", ["embedded-18", "debian-15"])
def test_a_promoted_standby_is_refused(name: str) -> None:
    with pair(name) as guarded:
        execute(guarded.standby.cluster, "SELECT pg_promote()")
        found = refused(guarded)
        assert {"standby-role", "streaming"} <= set(found)
        assert found["standby-role"].found.startswith("not in recovery")


@pytest.mark.wide
def test_neither_checksums_nor_hints_has_to_be_accepted() -> None:
    def off(cluster: Cluster) -> None:
        cluster.stop(clean=True)
        user = postgres_user()
        subprocess.run(
            [str(cluster._binaries.program("pg_checksums")), "--disable", "-D", str(cluster.data)],
            user=user.uid, group=user.gid, extra_groups=(), cwd="/", check=True,
            capture_output=True,
        )  # fmt: skip
        cluster.start([])

    with pair("embedded-18", off) as guarded:
        assert refused(guarded)["checksums"].may_be_accepted
        assert guarded.guard().check([*ACCEPTED, "checksums"]).allowed
