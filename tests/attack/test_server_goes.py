"""The server of a run goes away in the middle: what ended is kept, and the run can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from pgdyno.model.connection import Connection
from pgdyno.model.run import TrialState
from pgdyno.store.run_file import RunFile
from pgdyno.target.cluster import Cluster
from tests import children
from tests.attack.test_dry_run_changes_nothing import PLAN
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import run
from tests.waiting import DEADLINE_S, until

pytestmark = pytest.mark.cluster
PATIENCE_S = 120.0  # of a run, for its server to come back


def begin(
    plan: Path, out: Path, reconnect_s: float, window_s: float = 2.0
) -> subprocess.Popen[str]:
    changes = (f"protocol.reconnect_s={reconnect_s}", f"protocol.window_s={window_s}")
    return children.started(
        [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", str(out),
         *(word for one in changes for word in ("--set", one))],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def until_one_is_finished(out: Path, running: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        assert time.monotonic() < deadline, "no trial ended in time"
        assert running.poll() is None, running.communicate()
        if out.exists():
            with RunFile.read(out) as file:
                if file.finished():
                    return
        time.sleep(0.05)


def until_it_is_driven(server: Connection) -> None:
    asked = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'pgdyno_trial'"
    until(lambda: int(run(server, asked)[0][0]) > 2, "a trial is driven")


def until_it_ended(cluster: Cluster) -> None:
    pid_file = cluster.data / "postmaster.pid"
    until(lambda: not pid_file.exists(), "the server ends when its sessions have")
    cluster.stop(clean=False)


def start_again(cluster: Cluster) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        try:  # the processes of the dead server end a little later
            cluster.start([])
            return
        except Exception:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def resumed(out: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", "resume", str(out)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def own_checkpointer(server: Connection) -> int:
    rows = run(server, "SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    return int(rows[0][0])


def plan_on(server: Connection, folder: Path) -> Path:
    text = f"host={server.host} port={server.port} user={server.user} dbname=postgres"
    plan = folder / "plan.toml"
    plan.write_text(PLAN.replace("TARGET", f'kind = "running"\nconninfo = "{text}"'))
    return plan


@pytest.mark.same_machine
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
@pytest.mark.wide
def test_a_run_whose_server_goes_says_so_and_is_resumed(tmp_path: Path, how: int) -> None:
    with cluster_apart("embedded-18", "socket") as cluster:
        server = cluster.connection()
        run(server, "CREATE TABLE theirs AS SELECT generate_series(1, 9) AS id")
        plan, out = plan_on(server, tmp_path), tmp_path / "run.sqlite"

        running = begin(plan, out, 0)
        until_one_is_finished(out, running)
        os.kill(cluster.pid, how)
        _, said = running.communicate(timeout=DEADLINE_S)

        assert running.returncode == 3, said
        assert "Traceback" not in said
        flat = " ".join(said.split())
        # What of a killed server still comes through is chance.
        told = flat.count("stopped the server") + flat.count("server went away without a word")
        assert told == 1, flat
        assert f"Continue with `pgdyno resume {out}`" in flat
        with RunFile.read(out) as file:
            states = [trial.state for trial in file.trials()]
        assert states[0] is TrialState.FINISHED
        assert TrialState.PLANNED in states, "it did not try the rest for hours"

        cluster.stop(clean=False)
        start_again(cluster)
        run(server, "ALTER SYSTEM SET work_mem = '9MB'")
        run(server, "SELECT pg_reload_conf()")
        refused = resumed(out)
        assert refused.returncode == 2, refused.stderr
        flat = " ".join(refused.stderr.split())
        assert "setting: work_mem was 4MB, is 9MB" in flat
        run(server, "ALTER SYSTEM RESET work_mem")
        run(server, "SELECT pg_reload_conf()")
        done = resumed(out)
        assert done.returncode == 0, done.stderr
        with RunFile.read(out) as file:
            assert len(file.finished()) == 4
        names = {name for (name,) in run(server, "SELECT datname FROM pg_database")}
        ours = {name for name in names if name.startswith("pgdyno")}
        assert len(ours) == 1
        assert ours.pop().startswith("pgdyno_fixture_")
        assert run(server, "SELECT count(*) FROM theirs") == [(9,)]


@pytest.mark.same_machine
@pytest.mark.parametrize("how", ["crashed", "at once", "restarted", "in peace"])
@pytest.mark.long
def test_a_run_waits_for_its_server_and_ends_whole(tmp_path: Path, how: str) -> None:
    with cluster_apart("embedded-18", "socket") as cluster:
        server = cluster.connection()
        plan, out = plan_on(server, tmp_path), tmp_path / "run.sqlite"

        # A window that is long enough to be struck however late a busy machine tells of it.
        running = begin(plan, out, PATIENCE_S, window_s=5.0)
        until_one_is_finished(out, running)
        until_it_is_driven(server)
        if how == "at once":
            os.kill(cluster.pid, signal.SIGQUIT)
            until_it_ended(cluster)
            start_again(cluster)
        elif how == "restarted":
            cluster.stop(clean=True)
            start_again(cluster)
        elif how == "in peace":  # it takes no new session, and waits for those that are there
            os.kill(cluster.pid, signal.SIGTERM)
            until_it_ended(cluster)
            start_again(cluster)
        else:  # one process dies, and the server ends all others and recovers by itself
            os.kill(own_checkpointer(server), signal.SIGKILL)
        _, said = running.communicate(timeout=DEADLINE_S)

        assert running.returncode == 0, said
        flat = " ".join(said.split())
        assert "The server is waited for, 2 min 00 s at most." in flat
        assert "The server answers again" in flat
        with RunFile.read(out) as file:
            assert len(file.finished()) == 4
            failed = [trial for trial in (*file.trials(), *file.replaced()) if trial.failed]
        # What the load may have done counts against its stage; what an administrator did does not.
        assert len(failed) == (how == "crashed"), failed
        names = {name for (name,) in run(server, "SELECT datname FROM pg_database")}
        assert "pgdyno_trial" not in names


@pytest.mark.same_machine
@pytest.mark.long
def test_a_server_that_always_goes_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    with cluster_apart("embedded-18", "socket") as cluster:
        server = cluster.connection()
        plan, out = plan_on(server, tmp_path), tmp_path / "run.sqlite"

        running = begin(plan, out, PATIENCE_S)
        while running.poll() is None:  # every load that begins is killed
            try:
                pids = run(server, "SELECT pid FROM pg_stat_activity WHERE datname"
                                   " = 'pgdyno_trial'")  # fmt: skip
            except psycopg.Error:
                continue
            for (pid,) in pids[:1]:
                with suppress(ProcessLookupError):  # a session that ended by itself
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.05)
        _, said = running.communicate(timeout=DEADLINE_S)

        assert running.returncode == 3, said
        assert "Traceback" not in said
        flat = " ".join(said.split())
        assert "a second time before another trial was finished" in flat
        assert f"Continue with `pgdyno resume {out}`" in flat


@pytest.mark.same_machine
@pytest.mark.long
def test_a_server_that_stays_away_is_told_once(tmp_path: Path) -> None:
    with cluster_apart("embedded-18", "socket") as cluster:
        plan, out = plan_on(cluster.connection(), tmp_path), tmp_path / "run.sqlite"

        running = begin(plan, out, 1)
        until_one_is_finished(out, running)
        os.kill(cluster.pid, signal.SIGQUIT)
        _, said = running.communicate(timeout=DEADLINE_S)
        cluster.stop(clean=False)

        assert running.returncode == 3, said
        flat = " ".join(said.split())
        assert flat.count("stopped the server") == 1, flat
        assert "error: the server did not come back in 1 s; 1 of 4 trials finished" in flat
        assert "closed the connection unexpectedly" not in flat
