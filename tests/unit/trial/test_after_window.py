"""What follows a trial's window, and what may come before it: each action says so itself."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pgdyno.model.plan import Plan
from pgdyno.model.progress import Event, PhaseBegun
from pgdyno.model.run import TrialRecord, TrialResult, TrialState
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.store import RunFile
from pgdyno.trial import measure as of_trial
from pgdyno.trial.after_window import Action, EndedWindow
from pgdyno.trial.disasters import crash
from pgdyno.trial.measure import TestBed, steps
from pgdyno.trial.sampled import Sampled
from tests.data.miniature import write_miniature
from tests.data.servers import HOST, installed

SMALLEST = Path(__file__).parents[2] / "data" / "plans" / "good" / "smallest.toml"
NOTHING: Any = None


class Nobody:
    """A target that has no log."""

    def log_lines(self) -> None:
        return None

    def log_tail(self) -> None:
        return None

    def log_text(self) -> None:
        return None


@pytest.fixture
def plan() -> Plan:
    return resolve(read_plan(SMALLEST), installed(18), HOST)


@pytest.fixture
def result(tmp_path: Path) -> TrialResult:
    with RunFile.read(write_miniature(tmp_path / "other.sqlite")) as other:
        found = other.finished()[0].result
    assert found is not None
    return found


def test_a_crash_strikes_at_once(plan: Plan) -> None:
    ended = EndedWindow(NOTHING, (), NOTHING, plan.protocol, 1)
    assert crash.action(ended) is None
    struck = replace(ended, protocol=replace(plan.protocol, crash_recovery=True))
    action = crash.action(struck)
    assert action is not None
    assert (action.phase, action.at_once) == ("recover", True)


@pytest.mark.parametrize("at_once", [True, False])
def test_nothing_is_read_of_the_server_before_what_strikes_at_once(
    plan: Plan, result: TrialResult, monkeypatch: pytest.MonkeyPatch, at_once: bool
) -> None:
    """Whatever it is called: of all disasters the conductor knows none."""
    phases: list[str] = []

    def told(event: Event) -> None:
        if isinstance(event, PhaseBegun):
            phases.append(event.name)

    struck = Action("struck", lambda: lambda found, _: replace(found, notes=("struck",)), at_once)
    looked = Action("looked", lambda: lambda found, _: found)
    ready = SimpleNamespace(others=(), each=(), pooled=None)
    for name, stands_in in {
        "started": (ready, []),
        "guarding": nullcontext(),
        "_durability": None,
        "warmed": None,
        "drive_and_sample": (SimpleNamespace(window_s=1.0, window_ns=(0, 1)), Sampled()),
        "_wal": (None, ()),
        "_result": result,
        "actions_after_window": iter([struck, looked]),
    }.items():
        monkeypatch.setattr(of_trial, name, lambda *_, found=stands_in: found)
    stage = plan.stages[0]
    nobody: Any = Nobody()
    only: Any = {stage.name: None}
    bed = TestBed(nobody, only, only, NOTHING, told, lambda _: nullcontext())
    trial = TrialRecord(1, 1, stage.name, "t", TrialState.RUNNING)

    found, *_ = steps(stage, plan.protocol, bed, trial)

    assert phases == ["drive", *(["wal"] if not at_once else []), "struck", "looked"]
    assert found.notes == ("struck",)
