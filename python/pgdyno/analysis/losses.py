"""What a drill measured of stages, or of rungs, beside the stages of another run.

A stage takes what the drill did to the stage of its name, where that has the same settings; else
what it did to all stages of its rung. What a rung lost on another machine or with another load is
told as such: the drill is named with what it drove.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pgdyno.analysis.drill import row_of, took_of
from pgdyno.analysis.drill_facts import MeasuredLoss
from pgdyno.analysis.facts import StageFacts
from pgdyno.model.drill import Drilled
from pgdyno.model.plan import Plan, Stage


@dataclass(frozen=True, slots=True)
class Losses:
    """A drill that another run takes its losses from."""

    ident: str  # of its run
    drilled: Drilled


def with_losses(
    stages: Sequence[StageFacts], plan: Plan, losses: Losses | None
) -> tuple[StageFacts, ...]:
    """The same stages, each with what a drill measured of it.

    Args:
        stages: Of the run.
        plan: Of the run.
        losses: None: there is no drill.
    """
    if losses is None:
        return tuple(stages)
    return tuple(
        replace(one, measured=_measured(one, plan.stage(one.name), losses)) for one in stages
    )


def _measured(facts: StageFacts, stage: Stage, losses: Losses) -> tuple[MeasuredLoss, ...]:
    drilled = losses.drilled
    struck = [drilled.asked.plan.stage(name) for name in drilled.asked.stages]
    alike = [one for one in struck if one.name == stage.name and _same(one, stage)]
    chosen = alike or [one for one in struck if one.rung_known == facts.rung]
    names = tuple(one.name for one in chosen)
    found = []
    for disaster in drilled.asked.disasters:
        cuts = [one for one in drilled.cuts if one.stage in names and one.disaster == disaster.name]
        if cuts:
            row = row_of(", ".join(names), facts.rung, disaster.name, cuts)
            found.append(
                MeasuredLoss(disaster.name, took_of(row), row.harmed, names, bool(alike),
                             losses.ident, chosen[0].workload.kind)
            )  # fmt: skip
    return tuple(found)


def _same(one: Stage, other: Stage) -> bool:
    """Whether both give up the same of durability."""
    return (one.values, one.flags) == (other.values, other.flags)
