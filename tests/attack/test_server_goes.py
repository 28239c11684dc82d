"""The server of a run goes away in the middle: what ended is kept, and the run can be resumed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pgdyno.model.run import TrialState
from pgdyno.store.run_file import RunFile
from pgdyno.target.cluster import Cluster
from tests.attack.test_dry_run_changes_nothing import PLAN
from tests.cluster.conftest import cluster_apart
from tests.cluster.loading import run

pytestmark = pytest.mark.cluster
DEADLINE_S = 120.0


def begin(plan: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "pgdyno", "run", str(plan), "--out", str(out)],
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


@pytest.mark.same_machine
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.long)]
)
def test_a_run_whose_server_goes_says_so_and_is_resumed(tmp_path: Path, how: int) -> None:
    with cluster_apart("embedded-18", "socket") as cluster:
        server = cluster.connection()
        run(server, "CREATE TABLE theirs AS SELECT generate_series(1, 9) AS id")
        text = f"host={server.host} port={server.port} user={server.user} dbname=postgres"
        plan, out = tmp_path / "plan.toml", tmp_path / "run.sqlite"
        plan.write_text(PLAN.replace("TARGET", f'kind = "running"\nconninfo = "{text}"'))

        running = begin(plan, out)
        until_one_is_finished(out, running)
        os.kill(cluster.pid, how)
        _, said = running.communicate(timeout=DEADLINE_S)

        assert running.returncode == 3, said
        assert "Traceback" not in said
        flat = " ".join(said.split())
        assert "for this run is gone" in flat
        assert f"Continue with `pgdyno resume {out}`" in flat
        with RunFile.read(out) as file:
            states = [trial.state for trial in file.trials()]
        assert states[0] is TrialState.FINISHED
        assert TrialState.PLANNED in states, "it did not try the rest for hours"

        cluster.stop(clean=False)
        start_again(cluster)
        done = subprocess.run([sys.executable, "-m", "pgdyno", "resume", str(out)],
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert done.returncode == 0, done.stderr
        with RunFile.read(out) as file:
            assert len(file.finished()) == 4
        names = {name for (name,) in run(server, "SELECT datname FROM pg_database")}
        ours = {name for name in names if name.startswith("pgdyno")}
        assert len(ours) == 1
        assert ours.pop().startswith("pgdyno_fixture_")
        assert run(server, "SELECT count(*) FROM theirs") == [(9,)]
