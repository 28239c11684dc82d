"""`pgdyno run`, `resume` and `report` killed at any step: the next works, what was done is kept.

Fixtures and stages' folders at each step are those of `test_killed_run`; here whole commands are
killed, with the run file, the driver and the page.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.store.run_file import RunFile
from tests.attack.witness import tree
from tests.cluster.test_run import assert_nothing_left, servers
from tests.data.miniature import write_miniature
from tests.reachable import reachable_folder
from tests.tally import survived
from tests.waiting import DEADLINE_S

pytestmark = [pytest.mark.cluster, pytest.mark.same_machine]
ROOT = Path(__file__).parents[2]
SEED = 15
# In each command are at least so many, which the tests of all steps assert.
STEPS_OF_A_RUN, STEPS_OF_A_TRIAL, STEPS_OF_A_REPORT = 100, 40, 4
PLAN = """
name = "killed"
question = "Is what a killed run leaves whole?"

[target]
kind = "embedded"

[workload]
kind = "tpcb"
scale = 1
connections = 2

[protocol]
rounds = ROUNDS
warmup_s = 0.0
window_s = 1.0
lowest_rung = "D2"

[[stage]]
name = "one"
why = "What everybody gets."
"""
OURS = re.compile(
    r"run\.(sqlite(-journal)?|html)|\.run\.sqlite\.[0-9a-f]{16}(-journal)?|\.[0-9a-f]{16}\.new"
)
STRANGERS = (
    "here/run.sqlite.bak", "here/run", "here/.run.sqlite", "here/notes.html", "here/.pgdyno",
    "here/runs/run.sqlite", "home.old/fixtures/precious", "home.old/work/data/precious",
)  # fmt: skip


class Ground:
    """A home, the folder where the user is, and strangers in and beside them."""

    def __init__(self, folder: Path) -> None:
        self.home, self.here = folder / "home", folder / "here"
        self.plan, self.out = self.here / "plan.toml", self.here / "run.sqlite"
        for name in STRANGERS:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(name)
        (self.here / "link").symlink_to(folder / "home.old")
        self.two_rounds()
        self._before = self._seen()

    def two_rounds(self, rounds: int = 2) -> None:
        """Write the plan, and count it among what must stay."""
        self.plan.write_text(PLAN.replace("ROUNDS", str(rounds)))
        self._before = self._seen()

    def _seen(self) -> dict[str, tuple[Any, ...]]:
        found = {
            f"old/{name}": facts for name, facts in tree(self.home.parent / "home.old").items()
        }
        return found | {
            name: facts for name, facts in tree(self.here).items() if not OURS.fullmatch(name)
        }

    def killed(self, *words: str | Path, step: int, trials: int = 0) -> bool:
        """Kill a command of pgdyno at a step, counted from when so many trials were measured.

        Returns:
            Whether it came so far. If not, it must have done what it was told.
        """
        done = subprocess.run(
            [sys.executable, "-B", "-m", "tests.attack.killing_command", str(step), str(trials),
             *words],
            cwd=ROOT, env=os.environ | {"PGDYNO_HOME": str(self.home)},
            capture_output=True, text=True, timeout=DEADLINE_S, check=False,
        )  # fmt: skip
        assert done.returncode in (0, -signal.SIGKILL), (words, step, done.stderr)
        if done.returncode:
            self.assert_nobody_harmed(f"{words[0]} killed at step {step}")
            survived(f"kills of `pgdyno {words[0]}` at a step")
        return done.returncode != 0

    def assert_nobody_harmed(self, what: str) -> None:
        assert self._seen() == self._before, what
        for page in self.here.glob("run*.html"):
            text = page.read_text()
            assert text.startswith("<!doctype html>"), what
            assert text.rstrip().endswith("</html>"), what
        deadline = time.monotonic() + DEADLINE_S
        while (running := servers(self.home)) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert running == [], what

    def finished(self) -> list[TrialRecord]:
        """Trials that count, those that gave way to newer ones too; none where no file is."""
        if not self.out.exists():
            return []
        with RunFile.read(self.out) as run:
            return [one for one in (*run.trials(), *run.replaced()) if one.result is not None]

    def go_on(self) -> None:
        """What the user does next: `resume`, or `run` where there is no run file yet."""
        before = self.finished()
        words = ("resume", self.out) if self.out.exists() else ("run", self.plan, "--out", self.out)
        assert not self.killed(*words, step=-1)
        self.assert_nobody_harmed(f"after {words[0]}")
        with RunFile.read(self.out) as run:
            assert all(trial.state is TrialState.FINISHED for trial in run.trials())
        results = [trial.result for trial in self.finished()]
        assert all(trial.result in results for trial in before), "finished trials are kept"
        assert self.out.with_suffix(".html").exists()
        assert_nothing_left(self.home)

    def report_again(self) -> None:
        """Make the report that was broken off."""
        assert not self.killed("report", self.out, step=-1)
        assert self.out.with_suffix(".html").exists()
        self.assert_nobody_harmed("after report")

    def forget(self) -> None:
        """Remove the run file and the page."""
        for path in self.here.iterdir():
            if OURS.fullmatch(path.name):
                path.unlink()


@pytest.fixture
def ground() -> Iterator[Ground]:
    for folder in reachable_folder("commands"):
        yield Ground(folder)


@pytest.mark.wide
def test_a_run_its_resume_and_its_report_are_each_killed_once(ground: Ground) -> None:
    chosen = random.Random(SEED)
    step = chosen.randint(1, STEPS_OF_A_TRIAL)
    assert ground.killed("run", ground.plan, "--out", ground.out, step=step, trials=1)
    assert ground.killed("resume", ground.out, step=chosen.randint(1, STEPS_OF_A_RUN))
    ground.go_on()
    assert ground.killed("report", ground.out, step=chosen.randint(1, STEPS_OF_A_REPORT))
    ground.report_again()


def at_every_step(words: tuple[str | Path, ...], ground: Ground, after: Callable[[], None]) -> int:
    """Kill a command at each of its steps in turn; returns how many there were."""
    step = 1
    while ground.killed(*words, step=step):
        after()
        step += 1
    return step - 1


@pytest.mark.long
def test_a_run_is_killed_at_every_step(ground: Ground) -> None:
    ground.two_rounds(1)
    ground.go_on()  # so that the fixture is there

    def after() -> None:
        ground.go_on()
        ground.forget()

    ground.forget()
    words = ("run", ground.plan, "--out", ground.out)
    assert at_every_step(words, ground, after) >= STEPS_OF_A_RUN


@pytest.mark.long
def test_a_resume_is_killed_at_every_step(ground: Ground) -> None:
    """One of the second round, of which nothing is there yet."""
    ground.go_on()
    with RunFile.append(ground.out) as run:
        first, second = run.trials()
        again = replace(
            second, state=TrialState.PLANNED, result=None, started_ns=None, ended_ns=None
        )
        run.put_trial(again)
    half = ground.out.read_bytes()

    def after() -> None:
        assert first.result in [trial.result for trial in ground.finished()]
        ground.go_on()
        ground.forget()
        ground.out.write_bytes(half)

    words = ("resume", ground.out)
    ground.forget()
    ground.out.write_bytes(half)
    assert at_every_step(words, ground, after) >= STEPS_OF_A_RUN


@pytest.mark.long
@pytest.mark.parametrize("there", ["nothing", "an earlier report"])
def test_a_report_is_killed_at_every_step(ground: Ground, there: str) -> None:
    write_miniature(ground.out)
    page, run = ground.out.with_suffix(".html"), ground.out.read_bytes()

    def after() -> None:
        assert ground.out.read_bytes() == run
        assert page.exists() or there == "nothing"
        ground.report_again()
        if there == "nothing":
            page.unlink()

    if there != "nothing":
        ground.report_again()
    assert at_every_step(("report", ground.out), ground, after) >= STEPS_OF_A_REPORT
