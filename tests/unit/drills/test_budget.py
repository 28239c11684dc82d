"""A drill's time is shared out over its cuts, so that no stage is left without one."""

from __future__ import annotations

import pytest

from pgdyno.drills.budget import Budget
from pgdyno.model.drill import DrillDesign
from pgdyno.model.errors import PlanError


class Clock:
    """Goes on when it is told to."""

    def __init__(self) -> None:
        self.now_s = 50.0

    def __call__(self) -> float:
        """Seconds, from somewhere on."""
        return self.now_s


def cuts_made(budget: Budget, cuts: list[int], clock: Clock, each_s: float) -> list[int]:
    """Those that begin in time, where each takes so long."""
    made = []
    for one in budget.within(cuts):
        clock.now_s += each_s
        made.append(one)
    return made


def test_a_cut_begins_only_as_long_as_there_is_time() -> None:
    clock = Clock()
    assert cuts_made(Budget(60.0, clock), [1, 2, 3, 4], clock, each_s=25.0) == [1, 2, 3]


def test_a_stage_has_one_cut_though_its_time_is_over() -> None:
    clock = Clock()
    budget = Budget(60.0, clock)
    clock.now_s += 1_000
    assert cuts_made(budget.share(3, 6), [1, 2, 3], clock, each_s=1.0) == [1]


def test_what_the_first_cuts_leave_is_shared_by_the_others() -> None:
    clock = Clock()
    budget = Budget(60.0, clock)
    assert cuts_made(budget.share(10, 20), [*range(10)], clock, each_s=6.0) == [0, 1, 2, 3, 4]
    assert cuts_made(budget.share(10, 10), [*range(10)], clock, each_s=6.0) == [0, 1, 2, 3, 4]


def test_without_minutes_all_cuts_are_made() -> None:
    clock = Clock()
    made = cuts_made(Budget(None, clock).share(1, 9), [*range(9)], clock, each_s=1e6)
    assert made == [*range(9)]


def test_a_drill_of_no_time_is_refused() -> None:
    with pytest.raises(PlanError, match=r"minutes is 0, allowed is 0\.1 or more"):
        DrillDesign(minutes=0)
