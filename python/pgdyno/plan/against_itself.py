"""One stage of a plan against itself: what differs then is noise."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan, Trial
from pgdyno.plan.resolve.order import balanced_order
from pgdyno.plan.resolve.stages import twin

ROUNDS = 8
"""What tells the noise of most machines, in minutes."""
_LEAST = 3


def against_itself(plan: Plan, stage: str | None = None) -> Plan:
    """The plan with one of its stages alone, which is measured twice in every round.

    Args:
        plan: As resolved.
        stage: Its name; None: the first one.

    Raises:
        PlanError: There is no such stage, or fewer than three rounds.
    """
    names = [one.name for one in plan.stages if one.twin_of is None]
    name = stage or names[0]
    if name not in names:
        raise PlanError(f"{plan.source}: there is no stage {name}, known are {', '.join(names)}")
    rounds = plan.protocol.rounds
    if rounds < _LEAST:
        raise PlanError(
            f"{plan.source}: protocol.rounds is {rounds}, at least {_LEAST} tell what is noise",
            f"Say --rounds {ROUNDS}.",
        )
    first = replace(plan.stage(name), afresh=True, earlier={})
    stages = (first, twin(first))
    ident_of = {trial.round: trial.ident for trial in plan.trials if trial.stage == name}
    order = [
        (number, stages[index])
        for number, row in enumerate(balanced_order(2, rounds), 1)
        for index in row
    ]
    trials = tuple(
        Trial(number, round_number, one.name, ident_of[round_number])
        for number, (round_number, one) in enumerate(order, 1)
    )
    share = len(trials) / len(plan.trials)
    takes = replace(
        plan.estimate,
        measuring_s=plan.estimate.measuring_s * share,
        other_s=plan.estimate.other_s * share,
    )
    return replace(
        plan, name=f"aa-{plan.name}", question=f"How far apart are two measurements of {name}?",
        protocol=replace(plan.protocol, stop="rounds"), stages=stages, trials=trials,
        estimate=takes, aa=True, earlier=None, reference={},
    )  # fmt: skip
