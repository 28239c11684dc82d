"""`pgdyno bench` on databases that others loaded, with every kind of workload."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.shell import postgres_user
from pgdyno.target.binaries import find_binaries
from tests.cluster.conftest import TARGETS, cluster_apart
from tests.cluster.test_run import pgdyno

pytestmark = pytest.mark.cluster
SHORT = ("--warmup", "0", "--seconds", "1", "-c", "2")


@pytest.fixture(scope="module")
def conninfo() -> Iterator[str]:
    """A database that pgbench itself has filled."""
    with cluster_apart("embedded-18", "socket") as cluster:
        there = cluster.connection()
        pgbench = find_binaries(TARGETS["embedded-18"], postgres_user())
        subprocess.run(
            [pgbench.program("pgbench"), "-i", "-q", "-s", "1", "-h", there.host,
             "-p", str(there.port), "-U", there.user, there.database],
            check=True, capture_output=True,
        )  # fmt: skip
        yield f"host={there.host} port={there.port} user={there.user} dbname={there.database}"


def bench(conninfo: str, *args: str | Path) -> dict[str, Any]:
    done = pgdyno("bench", *args, "-d", conninfo, *SHORT, "--json")
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def counted(conninfo: str, sql: str) -> int:
    with psycopg.connect(conninfo) as session:
        row = session.execute(sql.encode()).fetchone()
    assert row is not None
    return int(row[0])


def test_pgbenchs_own_tables_are_driven(conninfo: str) -> None:
    before = counted(conninfo, "SELECT count(*) FROM pgbench_history")

    result = bench(conninfo, "tpcb", "--requests", "50", "--face", "pipeline")

    (kind,) = result["kinds"]
    assert kind["kind"] == "tpcb"
    assert kind["run"]["succeeded"] == 100  # 50 of each of two terminals
    assert counted(conninfo, "SELECT count(*) FROM pgbench_history") == before + 100
    assert (result["headline"], result["nopm"]) == ("tps", None)
    assert result["tps"] > 0
    assert result["round_trips_per_transaction"] == 1.0
    series = {one["name"]: one for one in result["series"]}
    committed = series["driver.committed.tpcb"]
    assert sum(committed["values"]) == 100
    assert len(committed["unix_ns"]) == len(committed["values"]) > 0
    assert (committed["unit"], committed["kind"]) == ("1/s", "rate")
    assert sum(series["driver.due"]["values"]) == 100


def test_a_rate_is_kept_and_latencies_of_statements_are_printed(conninfo: str) -> None:
    done = pgdyno("bench", "select-only", "-d", conninfo, *SHORT, "--rate", "100", "--poisson",
                  "--statements")  # fmt: skip

    assert "accounts_select" in done.stdout
    tps = next(line for line in done.stdout.splitlines() if " tps over " in line)
    assert 0 < float(tps.split()[0]) < 160
    assert "NOPM" not in done.stdout
    # A busy machine serves them late, but they are due when they are due.
    (kind,) = bench(conninfo, "select-only", "--rate", "100", "--poisson")["kinds"]
    assert 50 < kind["window"]["due"] < 160


@pytest.mark.wide
def test_scripts_and_mixes_are_driven(conninfo: str, tmp_path: Path) -> None:
    script, mix = tmp_path / "read.sql", tmp_path / "mix.toml"
    script.write_text("\\set aid random(1, :most * :scale)\n"
                      "SELECT abalance FROM pgbench_accounts WHERE aid = :aid;\n")  # fmt: skip
    mix.write_text(
        '[[transactions]]\nname = "look"\n'
        'statements = [{ sql = "SELECT 1 FROM pgbench_tellers WHERE tid = :tid", rows = 1 }]\n'
        'params.tid = { type = "int", uniform = [1, ":scale * 10"] }\n'
    )

    scripted = bench(conninfo, "script", script, "-D", "most=100000")
    mixed = bench(conninfo, "mix", mix)

    assert [kind["kind"] for kind in scripted["kinds"]] == ["read.sql"]
    assert [kind["kind"] for kind in mixed["kinds"]] == ["look"]
    for result in (scripted, mixed):
        assert result["tps"] > 0
        assert result["errors"] == []


@pytest.mark.wide
def test_what_is_not_there_is_said(conninfo: str, tmp_path: Path) -> None:
    with psycopg.connect(conninfo, autocommit=True) as session:
        session.execute("CREATE DATABASE bare")
    bare = conninfo.rpartition("=")[0] + "=bare"
    (tmp_path / "bad.sql").write_text("SELECT * FROM nowhere;\n")

    tpcb = pgdyno("bench", "tpcb", "-d", bare, *SHORT, code=2)
    script = pgdyno("bench", "script", tmp_path / "bad.sql", "-d", bare, *SHORT, code=4)

    assert "has no branches in a table pgbench_branches" in " ".join(tpcb.stderr.split())
    assert "nowhere" in script.stderr
    assert "Traceback" not in tpcb.stderr + script.stderr
