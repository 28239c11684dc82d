"""A dry run changes nothing and waits for nobody: servers, folders and /tmp are as they were."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pgdyno.host.disk_lock import VARIABLE
from pgdyno.model.connection import Connection
from pgdyno.target.home import open_home
from pgdyno.target.running_target import TRIAL, RunningTarget
from tests.attack.owning import conninfo_of
from tests.attack.witness import database_facts, server_facts, tree
from tests.cluster.conftest import TARGETS, VERSIONS, cluster_apart
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
PLAN = """
name = "nothing"
question = "Does a dry run change anything?"

[target]
TARGET

[workload]
kind = "select-only"
scale = 1
connections = 2

[protocol]
rounds = 2
warmup_s = 1
window_s = 2
lowest_rung = "D2"

[[stage]]
name = "as-it-is"
why = "What is there."

[[stage]]
name = "async"
why = "Commits do not wait for the disk."
settings = { synchronous_commit = "off" }
"""
# Other tests use /tmp as well: the command gets one of its own, and shows what it leaves there.
ALONE = 'mount -t tmpfs tmpfs /tmp && "$@" && ls -A /tmp >&2'


@dataclass(frozen=True, slots=True)
class Place:
    """A home and a folder to stand in; not in /tmp, which is another one for the command."""

    home: Path
    here: Path

    def dry_run(self, target: str) -> None:
        """Run the plan with --dry-run; the folders are the same before and after."""
        plan = self.here / "plan.toml"
        plan.write_text(PLAN.replace("TARGET", target))
        before = tree(self.home), tree(self.here)
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", ALONE, "sh",
             sys.executable, "-m", "pgdyno", "run", str(plan), "--dry-run"],
            cwd=self.here,
            env=os.environ | {"PGDYNO_HOME": str(self.home), VARIABLE: str(self.here)},
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert "as-it-is" in done.stdout
        assert done.stderr == "", "nothing is left in /tmp"
        assert (tree(self.home), tree(self.here)) == before


@pytest.fixture
def place() -> Iterator[Place]:
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-dry-", dir="/var/tmp"))
    folder.chmod(0o755)
    home = folder / "home"
    open_home(home).close()
    (folder / "here").mkdir()
    yield Place(home, folder / "here")
    shutil.rmtree(folder)


@pytest.fixture(scope="module", params=VERSIONS)
def server(request: pytest.FixtureRequest) -> Iterator[Connection]:
    with cluster_apart(request.param, "tcp") as cluster:
        yield cluster.measured_connection().to("postgres")


def of_running(server: Connection, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PGPASSWORD", server.password or "")
    text = f"host={server.host} port={server.port} user={server.user} dbname=postgres"
    return f'kind = "running"\nconninfo = "{text}"'


def test_on_a_running_server(
    server: Connection, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = server_facts(server), database_facts(server)
    place.dry_run(of_running(server, monkeypatch))
    assert (server_facts(server), database_facts(server)) == before


def test_while_another_run_measures(
    server: Connection, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = RunningTarget(conninfo_of(server))
    try:
        target._owner.create(TRIAL)
        target._trials.append(TRIAL)
        before = server_facts(server)
        place.dry_run(of_running(server, monkeypatch))
        assert server_facts(server) == before
    finally:
        target.close()


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_on_clusters_of_ours(name: str, place: Place) -> None:
    plan = TARGETS[name]
    bindir = f'\nbindir = "{plan.bindir}"' if plan.bindir else ""
    place.dry_run(f'kind = "{plan.kind}"{bindir}')
