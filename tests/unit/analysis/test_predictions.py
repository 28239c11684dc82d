"""What was believed of a stage beforehand stands beside what it reached."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import StageFacts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.predictions import with_predictions
from pgdyno.api.runs import Run
from pgdyno.model.plan import Plan
from pgdyno.model.proposal import Prediction
from tests.data.miniature import write_miniature


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite", invalid=()))


def believed(run: Run, prediction: Prediction | None, stage: str = "tuned") -> StageFacts:
    plan: Plan = plan_in(run.info)
    stages = tuple(
        replace(one, expects=prediction if one.name == stage else None) for one in plan.stages
    )
    found = with_predictions(run.facts.stages, replace(plan, stages=stages))
    assert [one.name for one in found if one.predicted] == ([stage] if prediction else [])
    return next(one for one in found if one.name == stage)


def test_what_came_is_told_by_how_far_off_it_was(run: Run) -> None:
    ratio = believed(run, None).to_first
    assert ratio is not None
    assert ratio.ratio is not None
    found = believed(run, Prediction(ratio.ratio / 1.1, 1.0, ratio.ratio * 2, "flush")).predicted
    assert found is not None
    assert found.startswith("`tuned` was believed to reach ×")
    assert "against flush before it was measured; it reached ×" in found
    assert found.endswith("+10% off")


def test_what_lies_beyond_all_that_was_believed_is_told_so(run: Run) -> None:
    low = believed(run, Prediction(1.01, 1.0, 1.02, "")).predicted
    assert low is not None
    assert low.endswith("more than was believed possible")
    assert "against" not in low
    high = believed(run, Prediction(30.0, 20.0, 40.0, "flush")).predicted
    assert high is not None
    assert high.endswith("less than was believed at worst")


def test_a_stage_without_a_comparison_says_so(run: Run) -> None:
    first = believed(run, Prediction(1.1, 1.0, 1.2, "flush"), "initdb").predicted
    assert first is not None
    assert first.endswith("and is not compared")
