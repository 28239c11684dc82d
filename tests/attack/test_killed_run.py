"""A run killed at any step: nothing foreign changed, nothing runs on, and the next one works."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.store.run_file import RunFile
from tests import children
from tests.cluster.test_run import PLAN, pgdyno, servers
from tests.reachable import reachable_folder
from tests.tally import survived
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).parents[2]
STEPS_MIN = 100  # of a fixture and a trial
OURS = ("pgdyno-work/", ".pgdyno-work.new/")  # in the folder of a stage; others begin alike


class Ground:
    """A home and a stage's folder, with strangers in and beside them."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.stage = folder / "stage"
        self.strangers = [
            self.stage / "pgdyno-works" / "precious",
            self.stage / "data" / "precious",
            self.stage / ".pgdyno",
            folder / "home.old" / "fixtures" / "precious",
        ]
        for path in self.strangers:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(path.name)
        (self.stage / "link").symlink_to(folder / "home.old")
        self.bystander = children.started(["sleep", "3600"], cwd=self.stage)
        self._before = self._seen()

    def _seen(self) -> list[tuple[str, int, int, int]]:
        return [
            (str(one), facts.st_mode, facts.st_uid, facts.st_size)
            for top in (self.stage, self.home.with_name("home.old"))
            for one in sorted(top.rglob("*"))
            if not f"{one.relative_to(top).parts[0]}/".startswith(OURS)
            for facts in [one.lstat()]
        ]

    def run(self, step: int = -1) -> subprocess.CompletedProcess[str]:
        """The work, killed at a step."""
        return subprocess.run(
            [sys.executable, "-m", "tests.attack.killing_process",
             self.home, self.stage, str(step)],
            cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_S, check=False,
            env=os.environ | {"PYTHONFAULTHANDLER": "1"},
        )  # fmt: skip

    def assert_nothing_foreign_changed(self, step: int) -> None:
        assert self._seen() == self._before, f"at step {step}"
        assert self.bystander.poll() is None

    def assert_nothing_left(self) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while (running := servers(self.home) + servers(self.stage)) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert running == []
        assert [one.name for one in self.stage.iterdir() if f"{one.name}/".startswith(OURS)] == []
        work = {path.name for path in (self.home / "work").iterdir()}
        assert work == {".pgdyno"}
        assert [path.name for path in (self.home / "fixtures").glob("*.loading")] == []


@pytest.fixture
def ground() -> Iterator[Ground]:
    for folder in reachable_folder("killed"):
        found = Ground(folder)
        yield found
        found.bystander.kill()
        found.bystander.wait()


@pytest.mark.parametrize(
    ("first", "stride"),
    [
        *(
            pytest.param(one, 4, marks=pytest.mark.long, id=f"all, {one} of 4")
            for one in range(1, 5)
        ),
        pytest.param(7, None, id="some"),  # one near the begin, one near the end
    ],
)
def test_a_run_killed_at_any_step_hurts_nobody_and_the_next_one_works(
    ground: Ground, first: int, stride: int | None
) -> None:
    whole = ground.run()
    assert whole.returncode == 0, whole.stderr
    steps = int(whole.stdout)
    assert steps > STEPS_MIN
    for step in range(first, steps, stride or (steps - first) * 9 // 10):
        shutil.rmtree(ground.home / "fixtures")  # so that there is as much to do as before
        killed = ground.run(step)
        if killed.returncode == 0:  # steps differ a little: how often a start is asked for
            assert step > int(killed.stdout)
            break
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        ground.assert_nothing_foreign_changed(step)
        after = ground.run()
        assert after.returncode == 0, f"after step {step}: {after.stderr}"
        ground.assert_nothing_foreign_changed(step)
        ground.assert_nothing_left()
        survived("kills of a run at a call")


@pytest.mark.wide
def test_a_closed_terminal_ends_a_run_as_ctrl_c_does(folder: Path, home_env: Path) -> None:
    plan, out, errors = folder / "small.toml", folder / "run.sqlite", folder / "errors"
    plan.write_text(PLAN)
    ours, theirs = pty.openpty()
    # What runs these tests may ignore the signal, as nohup does: children inherit that.
    with errors.open("w") as told:
        process = children.started(
            ["env", "--default-signal=HUP", "setsid", "--ctty", sys.executable, "-m", "pgdyno",
             "run", str(plan), "--out", str(out)],
            stdin=theirs, stdout=theirs, stderr=told,
        )  # fmt: skip
    os.close(theirs)
    try:
        deadline = time.monotonic() + DEADLINE_S
        while not _finished(out):
            assert process.poll() is None, errors.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.1)
        os.close(ours)
        ours = -1
        code = process.wait(DEADLINE_S)
    finally:
        process.kill()
        process.wait()
        if ours >= 0:
            os.close(ours)

    assert code == 130
    assert f"pgdyno resume {out}" in " ".join(errors.read_text().split())
    assert servers(home_env) == []
    assert not (home_env / "work" / "data").exists()
    assert 1 <= _finished(out) < 4
    pgdyno("report", out, "--format", "json")


def _finished(out: Path) -> int:
    if not out.exists():
        return 0
    with RunFile.read(out) as run:
        return len(run.finished())
