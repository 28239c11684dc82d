"""What was believed of a stage before it was measured, beside what it reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pgdyno.analysis import words
from pgdyno.analysis.facts import StageFacts
from pgdyno.model.plan import Plan
from pgdyno.model.proposal import Prediction


def with_predictions(stages: Sequence[StageFacts], plan: Plan) -> tuple[StageFacts, ...]:
    """The same stages, each with a sentence on what was believed of it, if anything was."""
    believed = {one.name: one.expects for one in plan.stages if one.expects is not None}
    return tuple(
        replace(one, predicted=_sentence(one, believed[one.name])) if one.name in believed else one
        for one in stages
    )


def _sentence(stage: StageFacts, believed: Prediction) -> str:
    against = f" against {believed.limit}" if believed.limit else ""
    found = stage.to_first
    said = f"`{stage.name}` was believed to reach {believed}{against} before it was measured"
    if found is None or found.ratio is None:
        return f"{said}, and is not compared"
    reached = f"{words.ratio(found)} of `{found.base}` ({words.interval(found)})"
    if found.low is not None and found.low > believed.high:
        return f"{said}; it reached {reached}, more than was believed possible"
    if found.high is not None and found.high < believed.low:
        return f"{said}; it reached {reached}, less than was believed at worst"
    off = found.ratio / believed.ratio - 1
    return f"{said}; it reached {reached}, {off:+.0%} off"
