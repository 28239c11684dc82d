"""The real pgbench as the engine, on servers of two versions: counts are those of the server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psycopg
import pytest

from pgdyno.drive.result import Driven
from pgdyno.loader.consistency import check, require
from pgdyno.loader.copy import How, load
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Data, Engine, Pgbench, Script, SourceFile, Workload
from pgdyno.shell import postgres_user
from pgdyno.store import RunFile
from pgdyno.target.binaries import find_binaries
from pgdyno.target.cluster import Cluster
from pgdyno.trial.window import drive_alone
from pgdyno.workload.describe import describe
from tests import children
from tests.cluster.conftest import TARGETS, VERSIONS, cluster_apart
from tests.cluster.standstill import standstill
from tests.cluster.test_run import pgdyno
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
PROTOCOL = Protocol(1, 0.5, 1.5, 10.0, False, 0.02, 0.95, Rung.D0)
TPCB = Workload(
    "tpcb", 5, engine="pgbench", connections=4, terminals=4, threads=2, pgbench=Pgbench(1)
)
SCRIPT = r"""
\set tid random(1, 10 * :scale)
SELECT tbalance FROM pgbench_tellers WHERE tid = :tid;
UPDATE pgbench_tellers SET filler = :word WHERE tid = :tid AND :client_id = -1;
"""


@dataclass(frozen=True, slots=True)
class There:
    """A loaded server, and where its programs are."""

    cluster: Cluster
    connection: Connection
    bindir: Path

    @property
    def conninfo(self) -> str:
        """For the command line."""
        one = self.connection
        return f"host={one.host} port={one.port} user={one.user} dbname={one.database}"

    def count(self, sql: str) -> int:
        """A number from the server."""
        with psycopg.connect(**self.connection.arguments()) as session:
            row = session.execute(sql.encode()).fetchone()
        assert row is not None
        return int(row[0])

    def committed(self) -> int:
        """What the server has counted; after its sessions have told."""
        deadline = time.monotonic() + DEADLINE_S
        while self.count("SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
                         "'client backend'") > 1:  # fmt: skip
            assert time.monotonic() < deadline
            time.sleep(0.05)
        return self.count(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        )


@pytest.fixture(scope="module", params=VERSIONS)
def there(request: pytest.FixtureRequest) -> Iterator[There]:
    binaries = find_binaries(TARGETS[request.param], postgres_user())
    with cluster_apart(request.param, "socket") as cluster:
        connection = cluster.connection()
        load(connection, TPCB, How(connections=2))
        yield There(cluster, connection, binaries.bindir)


def driven(there: There, workload: Workload) -> Driven:
    result, _ = drive_alone(
        there.connection, workload, PROTOCOL, None, lambda _: None, there.bindir
    )
    assert result.errors == (), result.errors
    return result


def left() -> set[str]:
    """Folders of pgbench's logs."""
    return {
        name
        for place in ("/dev/shm", "/tmp")
        for name in os.listdir(place)
        if name.startswith("pgdyno-pgbench-")
    }


def assert_no_log_left() -> None:
    """Those of others who measure beside us go when they have measured; ours is gone, or stays."""
    found = left()
    until(lambda: not found & left(), "end of all pgbench logs")


@pytest.mark.parametrize("engine", ["pgdyno", "pgbench"])
def test_tpcb_is_what_the_server_has_in_its_history(there: There, engine: Engine) -> None:
    before = there.count("SELECT count(*) FROM pgbench_history")

    result = driven(there, replace(TPCB, engine=engine))

    (kind,) = result.kinds
    assert kind.kind == "tpcb"
    assert there.count("SELECT count(*) FROM pgbench_history") == before + kind.run.succeeded
    assert 0 < kind.window.succeeded < kind.run.succeeded
    window, run = kind.window, kind.run
    assert window.due == window.succeeded + window.unfinished
    assert (run.due, run.failed) == (run.succeeded, 0)
    assert 0 < kind.response_ns["p50"] <= kind.response_ns["p99"] <= kind.response_ns["max"]
    seconds = {one.name: one.values.sum() for one in result.series}
    assert seconds["driver.committed.tpcb"] == kind.run.succeeded
    times = {name: sum_ for name, sum_ in seconds.items() if name.startswith("driver.response.")}
    assert sum(times.values()) == kind.run.succeeded, "each has its time, whoever drives"
    assert (result.statements_per_transaction, result.client.threads) == (7, 2)
    assert 0 < result.client.user_s + result.client.system_s < 2 * result.window_s
    require(check(there.connection, describe(TPCB).conditions))
    assert_no_log_left()


@pytest.mark.parametrize(
    "arrivals",
    [Arrivals(), pytest.param(Arrivals("open", 200.0, "poisson"), marks=pytest.mark.wide)],
)
def test_a_stall_across_the_end_shows_as_far_as_pgbench_tells(
    there: There, arrivals: Arrivals
) -> None:
    left_s: list[float] = []  # of the window, when the server stopped
    beyond_s = 1.5  # the window, and the time of pgbench

    def stall(progress: DriveProgress) -> None:
        if progress.phase != "window" or left_s:
            return
        told = time.monotonic()
        with standstill(there.connection):
            left_s.append(progress.phase_left_s - (time.monotonic() - told))
            time.sleep(left_s[0] + beyond_s)

    workload, protocol = replace(TPCB, arrivals=arrivals), replace(PROTOCOL, window_s=4.0)
    result, _ = drive_alone(there.connection, workload, protocol, None, stall, there.bindir)

    (kind,) = result.kinds
    assert kind.window.drained == kind.window.unfinished == TPCB.connections
    assert kind.response_ns["max"] / 1e9 > left_s[0] + beyond_s - 0.2
    assert result.drained_s > beyond_s / 2
    if arrivals.kind == "closed":
        assert (result.outcome, result.unlogged) == ("complete", 0)
        assert "exact_below" not in kind.response_ns
    else:
        assert result.outcome == "unanswered"
        due = workload.arrivals.per_s * left_s[0]
        assert 0.6 * due < result.unlogged < 1.4 * due
        assert kind.response_ns["exact_below"] == 0


def test_pgbenchs_word_is_kept_beside_ours(there: There) -> None:
    result = driven(there, TPCB)

    said = result.pgbench
    assert said is not None
    assert said.transactions == result.kinds[0].run.succeeded
    assert result.engine == said.version
    assert str(there.cluster.connection().database) == "postgres"
    assert [one.text[:6] for one in said.statements[4:]] == [
        "BEGIN;", "UPDATE", "SELECT", "UPDATE", "UPDATE", "INSERT", "END;",
    ]  # fmt: skip
    # Between two statements pgbench itself works, for long where it waits for a processor.
    assert 0.5 < sum(one.mean_s for one in said.statements) / said.latency_mean_s <= 1.01


@pytest.mark.parametrize("engine", ["pgdyno", "pgbench"])
def test_select_only_is_what_the_server_has_committed(there: There, engine: Engine) -> None:
    before = there.committed()

    result = driven(there, replace(TPCB, kind="select-only", engine=engine))

    more = there.committed() - before
    assert result.kinds[0].run.succeeded <= more <= result.kinds[0].run.succeeded + 200


@pytest.mark.parametrize("engine", ["pgdyno", "pgbench"])
def test_scripts_are_driven_by_weight(there: There, engine: Engine) -> None:
    files = (SourceFile("move.sql", SCRIPT, 3.0), SourceFile("see.sql", "SELECT 1;"))
    script = Script(files, Data(scale=1), {"word": "x"})
    before = there.committed()

    result = driven(there, replace(TPCB, kind="script", engine=engine, pgbench=None, script=script))

    move, see = result.kinds
    assert (move.kind, see.kind) == ("move.sql", "see.sql")
    assert 2 < move.run.succeeded / see.run.succeeded < 4
    # Each statement is a transaction of its own.
    statements = 2 * move.run.succeeded + see.run.succeeded
    assert statements <= there.committed() - before <= statements + 200


def test_a_rate_is_kept_and_waiting_counts(there: There) -> None:
    paced = replace(TPCB, arrivals=Arrivals("open", 200.0, "poisson"))

    (kind,) = driven(there, paced).kinds

    assert 200 < kind.window.due < 400  # 300 are expected, however late they are served
    assert kind.queue_ns["mean"] > 0
    assert kind.response_ns["mean"] == pytest.approx(
        kind.queue_ns["mean"] + kind.service_ns["mean"], rel=0.01
    )


def test_a_script_that_fails_is_an_error(there: There) -> None:
    script = Script((SourceFile("bad.sql", "SELECT nothing FROM nowhere;"),), Data())

    with pytest.raises(DriveError, match=r'pgbench failed: .*relation "nowhere" does not exist'):
        driven(there, replace(TPCB, kind="script", pgbench=None, script=script))
    assert_no_log_left()


def test_a_server_that_goes_away_ends_the_command(there: There) -> None:
    command = start(there, "--seconds", "300")
    wait_until_driving(there)
    with psycopg.connect(**there.connection.arguments(), autocommit=True) as session:
        session.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )
    _, errors = command.communicate(timeout=DEADLINE_S)

    assert command.returncode == DriveError.exit_code
    assert "error: pgbench failed: " in errors
    assert "terminating connection" in errors or "aborted in command" in errors
    assert_no_log_left()


def test_ctrl_c_ends_pgbench_too(there: There) -> None:
    command = start(there, "--seconds", "300")
    wait_until_driving(there)
    command.send_signal(signal.SIGINT)
    _, errors = command.communicate(timeout=DEADLINE_S)

    assert command.returncode == 130
    assert "Traceback" not in errors
    there.committed()  # no session is left
    assert_no_log_left()


def start(there: There, *args: str) -> subprocess.Popen[str]:
    return children.started(
        [sys.executable, "-m", "pgdyno", "bench", "tpcb", "--engine", "pgbench",
         "--bindir", str(there.bindir), "-d", there.conninfo, "--warmup", "0", *args],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_until_driving(there: There) -> None:
    before = there.count("SELECT count(*) FROM pgbench_history")
    deadline = time.monotonic() + DEADLINE_S
    while there.count("SELECT count(*) FROM pgbench_history") < before + 10:
        assert time.monotonic() < deadline
        with suppress(psycopg.Error):
            time.sleep(0.05)


def test_the_command_prints_both(there: There) -> None:
    short = ("--warmup", "0", "--seconds", "1", "-c", "2", "--statements")
    done = pgdyno("bench", "tpcb", "--engine", "pgbench", "--bindir", there.bindir,
                  "-d", there.conninfo, *short)  # fmt: skip

    assert " tps over 1.0 s" in done.stdout
    assert " itself, warm-up included: " in done.stdout
    assert "INSERT INTO pgbench_history" in done.stdout


PLAN = """
name = "both"
question = "Do they agree?"
[workload]
kind = "tpcb"
scale = 1
connections = 2
[protocol]
rounds = 1
warmup_s = 0
window_s = 1
[[stage]]
name = "ours"
why = "."
[[stage]]
name = "theirs"
why = "."
client = { engine = "pgbench" }
"""


@pytest.mark.long
@pytest.mark.usefixtures("home_env")
def test_a_plan_compares_the_two(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    out = tmp_path / "run.sqlite"

    pgdyno("run", tmp_path / "plan.toml", "--out", out)
    pgdyno("report", out, "--format", "md")
    text = out.with_suffix(".md").read_text()

    with RunFile.read(out) as run:
        ours, theirs = (trial.result for trial in run.finished())
    assert ours is not None
    assert theirs is not None
    assert (ours.engine, ours.pgbench) == ("pgdyno", None)
    assert theirs.engine.startswith("pgbench (PostgreSQL) 18.")
    assert theirs.deltas["server.cpu_s"] > 0
    assert "## What pgbench itself says" in text
    assert "pgdyno in trial 1" in text
    assert f"{theirs.engine} in trial 2" in text
