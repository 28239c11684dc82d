"""A climb on a real server: stopped in its first step, resumed, and judged at its end.

Windows of a second tell nothing of a limit, so that what is found stands here; all that follows
from it is real.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.diagnosis_facts import Gain, RuleAnswer
from pgdyno.analysis.judged import plan_in
from pgdyno.api import proposing
from pgdyno.catalog import moves
from pgdyno.diagnosis.moves import Candidate
from pgdyno.model.errors import Interrupted, PlanError
from pgdyno.model.progress import Event, TrialEnded
from pgdyno.model.proposal import Prediction
from pgdyno.model.settings import Rung
from pgdyno.store.run_file import RunFile

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.same_machine]
PLAN = {
    "name": "small", "question": "How far does it climb?",
    "workload": {"kind": "tpcb", "scale": 1, "connections": 2},
    "protocol": {"rounds": 8, "stop": "rounds", "warmup_s": 0.5, "window_s": 1},
    "stage": [{"name": "initdb", "why": "What everybody gets."}],
}  # fmt: skip
FLUSH = RuleAnswer(4, "flush", "the flush of WAL at commit", "finding", "flushes take 41%",
                   gain=Gain(1.4, 1.5, 1.6))  # fmt: skip
ROUND = 3  # trials: the base, and two moves
LIMITS = pgdyno.ClimbLimits(lowest=Rung.D2, minutes=30)


def found(*_: object) -> tuple[Candidate, ...]:
    """What is always believed to help."""
    return tuple(
        Candidate(moves()[name], FLUSH, Prediction(ratio, 1.0, 1.6, "flush"))
        for name, ratio in (("async-commit", 1.4), ("group-commit", 1.1))
    )


def started(path: Path) -> set[int | None]:
    """When the finished trials of a run began."""
    with RunFile.read(path) as file:
        return {one.started_ns for one in file.finished()}


def test_a_climb_is_stopped_in_a_step_gone_on_with_and_judged(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposing, "candidates", found)
    path = folder / "climb.sqlite"
    step = folder / "climb" / "step-1.sqlite"

    def stop(event: Event) -> None:
        if isinstance(event, TrialEnded) and step.exists() and len(started(step)) >= ROUND:
            raise KeyboardInterrupt

    plan = pgdyno.load_plan(PLAN)
    with pytest.raises(Interrupted) as caught:
        pgdyno.climb(plan, limits=LIMITS, out=path, on_event=stop)
    assert str(caught.value.hint) == f"Continue with `pgdyno resume {path}`."
    stopped = pgdyno.Run(path)
    assert not stopped.is_whole
    (begun,) = stopped.climbed.steps
    assert begun.seconds is None
    before = started(step)
    believed = {one.name: one.expects for one in plan_in(pgdyno.Run(step).info).stages}
    assert believed == {"initdb": None} | {one.stage: one.predicted for one in begun.tried}

    run = pgdyno.resume(path)
    assert run.is_whole
    climbed = run.climbed
    assert before <= started(step), "what was measured is not measured again"
    assert climbed.stopped is not None
    first = climbed.steps[0]
    assert all(one.found is not None for one in first.tried)
    assert climbed.final is not None, "tuned and pgtune's rules are asked in any case"
    if climbed.accepted:
        assert climbed.final.stages[:2] == ("initdb", "climbed")
        assert climbed.final.plain
        assert tuple(one.base for one in climbed.final.beside) == climbed.final.stages[2:]
        climbed_stage = plan_in(pgdyno.Run(folder / "climb" / "final.sqlite").info).stages[1]
        kept = {one.name for one in climbed_stage.settings}
        assert kept >= {change.name for one in climbed.accepted if one.move in climbed.kept
                        for change in one.changes}  # fmt: skip
        again = pgdyno.load_plan(folder / "climb" / "climbed.toml")
        assert [one.name for one in again.stages] == ["initdb", "climbed"]
        assert [(one.name, one.value) for one in again.stages[1].settings] == [
            (one.name, one.value) for one in climbed_stage.settings
        ]
    assert "climb.html" in {one.name for one in folder.iterdir()}
    with pytest.raises(PlanError, match=r"folder .* exists"):
        pgdyno.climb(plan, limits=LIMITS, out=folder / "climb.other")
