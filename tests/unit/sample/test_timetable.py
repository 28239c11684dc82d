"""When a sampler is due: evenly or anywhere in each interval, and what is late is lost."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.sample.timetable import Timetable


def times_of(table: Timetable, until_s: float, takes_s: float = 0.0) -> list[float]:
    """When it was done, by somebody who is always there and needs some time."""
    found = []
    while table.due_s < until_s:
        found.append(table.due_s)
        table.done(table.due_s + takes_s)
    return found


def test_even_times_are_an_interval_apart() -> None:
    table = Timetable(100.0, 0.5)

    assert times_of(table, 102.0) == [100.0, 100.5, 101.0, 101.5]
    assert table.lost == 0


def test_random_times_fall_in_each_interval_once() -> None:
    table = Timetable(7.0, 0.1, np.random.default_rng(3).random)

    found = np.array(times_of(table, 107.0))

    assert np.array_equal(np.floor((found - 7.0) / 0.1 + 1e-9), np.arange(len(found)))
    places = (found - 7.0) / 0.1 % 1
    assert places.mean() == pytest.approx(0.5, abs=0.05)
    assert places.std() == pytest.approx(12**-0.5, abs=0.03)


def test_a_late_time_is_kept_to_and_those_that_went_by_are_lost() -> None:
    table = Timetable(0.0, 1.0)
    table.done(0.0)
    assert table.due_s == 1.0

    table.done(1.9)  # late, but within its interval
    assert (table.due_s, table.lost) == (2.0, 0)
    table.done(5.5)  # 3, 4 and 5 went by
    assert (table.due_s, table.lost) == (6.0, 3)


@pytest.mark.parametrize("takes_s", [0.03, 0.13, 0.5, 1.7])
def test_every_interval_is_taken_or_lost(takes_s: float) -> None:
    table = Timetable(0.0, 0.1, np.random.default_rng(4).random)

    taken = len(times_of(table, 60.0, takes_s))

    assert taken + table.lost == pytest.approx(600, abs=1 + takes_s / 0.1)
    assert bool(table.lost) == (takes_s > 0.1) or takes_s < 0.1


def test_what_was_due_until_the_end_is_lost() -> None:
    table = Timetable(0.0, 0.1, np.random.default_rng(5).random)
    taken = len(times_of(table, 6.0))

    table.ended(9.0)

    assert (taken, table.lost) == (60, 30)


def test_a_clock_that_leaps_costs_no_time() -> None:
    table = Timetable(0.0, 0.001)

    table.done(1e9)

    assert table.lost == pytest.approx(1e12, rel=1e-9)
    assert table.due_s >= 1e9
