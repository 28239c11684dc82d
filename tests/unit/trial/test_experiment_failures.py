"""The machine fails in the middle of a plan: which trials fail, what ends it, what is kept."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest

from pgdyno.api.experiments import plan as module
from pgdyno.api.experiments.plan import carry_out as carry_out_plan
from pgdyno.model.errors import PlanError, StoreError, TargetError
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.plan import Plan
from pgdyno.model.run import Fixture, RunInfo, TrialRecord, TrialResult, TrialState
from pgdyno.plan import read_plan
from pgdyno.plan.resolve.plan import resolve
from pgdyno.store import RunFile
from pgdyno.target.open_target import require_rehearsed
from pgdyno.trial import measure as of_trial
from pgdyno.trial.sampled import Sampled
from tests.data.miniature import write_miniature
from tests.data.servers import HOST, installed

PLAN = Path(__file__).parents[2] / "data" / "plans" / "good" / "smallest.toml"


class Nobody:
    """A target that does nothing."""

    def stop(self) -> None:
        pass

    def last_words(self) -> None:
        return None

    def rehearse(self, stages: object) -> list[tuple[str, str]]:
        return [("a", "no such library"), ("b", "no memory")]


@pytest.fixture
def plan() -> Plan:
    return resolve(read_plan(PLAN, ["protocol.rounds=4"]), installed(18), HOST)


@pytest.fixture
def run(plan: Plan, tmp_path: Path) -> RunFile:
    planned = [
        TrialRecord(one.number, one.round, one.stage, one.ident, TrialState.PLANNED)
        for one in plan.trials
    ]
    info = RunInfo("r", 1, "0", "pgdyno run", plan, HostManifest(), Installation(), None)
    return RunFile.create(tmp_path / "run.sqlite", info, planned)


@pytest.fixture
def good(tmp_path: Path) -> TrialResult:
    with RunFile.read(write_miniature(tmp_path / "other.sqlite")) as other:
        result = other.finished()[0].result
    assert result is not None
    return result


@pytest.fixture
def carry_out(
    plan: Plan, run: RunFile, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Callable[..., Any]], None]:
    fixture = Fixture("f", FixtureShape(), 1, None, (), "copy", reused=False)
    stages = dict.fromkeys([stage.name for stage in plan.stages], fixture)
    monkeypatch.setattr(module, "make_fixtures", lambda *_: stages)
    monkeypatch.setattr(of_trial, "judge", lambda *_: (TrialState.FINISHED, None))

    def carry_out(measure: Callable[..., Any]) -> None:
        monkeypatch.setattr(of_trial, "steps", measure)
        nobody: Any = Nobody()
        carry_out_plan(plan, nobody, run, lambda _: None)

    return carry_out


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (OSError(errno.EIO, "Input/output error", "/srv"), "/srv: input/output error (The device"),
        (psycopg.OperationalError("server closed"), "the server failed: server closed"),
        (MemoryError(), "there is not enough memory"),
        (TargetError("gone", "Start it."), "gone (Start it.)"),
    ],
)
def test_a_failure_of_the_system_is_that_of_its_trial(
    carry_out: Any, run: RunFile, good: TrialResult, error: Exception, reason: str
) -> None:
    def measure(*given: Any) -> tuple[TrialResult, Sampled, None, str]:
        if given[-1].number == 2:
            raise error
        return good, Sampled(), None, "log"

    carry_out(measure)

    states = [trial.state for trial in run.trials()]
    assert states == [TrialState.FINISHED, TrialState.FAILED, *[TrialState.FINISHED] * 2]
    assert str(run.trials()[1].reason).startswith(reason)


def test_a_defect_of_ours_is_not_taken_for_a_failed_trial(carry_out: Any) -> None:
    def measure(*_: object) -> None:
        raise KeyError("tuned")

    with pytest.raises(KeyError):
        carry_out(measure)


def test_a_full_disk_of_the_run_file_ends_the_plan_and_keeps_what_was_finished(
    carry_out: Any, run: RunFile, good: TrialResult
) -> None:
    """SQLite itself says that the disk is full, where it may not have more pages."""
    pages = run._db.execute("PRAGMA page_count").fetchone()[0]
    run._db.execute(f"PRAGMA max_page_count = {pages + 40}")

    def measure(*_: object) -> tuple[TrialResult, Sampled, None, str]:
        return good, Sampled(), None, "x" * 50_000

    with pytest.raises(StoreError, match="disk is full") as caught:
        carry_out(measure)
    assert "pgdyno resume" in str(caught.value.hint)
    kept = run.finished()
    assert 1 <= len(kept) < 4

    run._db.execute("PRAGMA max_page_count = 100000")
    with RunFile.append(run.path) as again:
        assert again.finished() == kept
        again.put_trial(again.trials()[-1])


def test_what_a_rehearsal_refuses_is_told_at_once(plan: Plan) -> None:
    nobody: Any = Nobody()
    with pytest.raises(PlanError, match="2 errors") as caught:
        require_rehearsed(plan, nobody, plan.stages)

    assert "stage a: no such library\n  stage b: no memory" in caught.value.fact
