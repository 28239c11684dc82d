"""Changes of level are found where they are, and hardly ever where there is none."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.stats.change_points import RUNS_MIN, change_points

SD = 0.03
SERIES = 600


def series(seed: int, *levels: tuple[int, float]) -> list[float]:
    """Runs at levels, with the noise of sessions."""
    rng = np.random.default_rng(seed)
    return [
        log(30_000 * level) + float(rng.normal(0.0, SD)) for count, level in levels
        for _ in range(count)
    ]  # fmt: skip


@pytest.mark.parametrize("runs", [8, 12, 30])
def test_a_series_without_a_change_hardly_ever_gets_one(runs: int) -> None:
    found = sum(bool(change_points(series(seed, (runs, 1.0)))) for seed in range(SERIES))
    assert found / SERIES <= 0.05 + 2.5 * (0.05 * 0.95 / SERIES) ** 0.5


def test_a_change_is_found_at_its_place_with_its_size() -> None:
    hits = 0
    for seed in range(100):
        found = change_points(series(seed, (10, 1.0), (10, 0.85)))
        hits += len(found) == 1 and abs(found[0].place - 10) <= 1
    assert hits >= 90
    (one,) = change_points(series(3, (10, 1.0), (10, 0.85)))
    assert one.ratio == pytest.approx(0.85, rel=0.04)
    assert one.p < 0.01


def test_of_places_that_ranks_leave_alike_the_sharpest_is_taken() -> None:
    # The fifth is the lowest of its level, so that four and five values lie above all that follow.
    levels = (1.00, 1.02, 0.99, 1.01, 0.97, 0.80, 0.79, 0.81, 0.80)
    (one,) = change_points([log(level) for level in levels])
    assert one.place == 5


def test_two_changes_are_found_in_their_order() -> None:
    found = change_points(series(5, (12, 1.0), (12, 0.8), (12, 1.1)))
    assert [one.place for one in found] == [12, 24]
    assert [round(one.ratio, 1) for one in found] == [0.8, 1.4]


@given(st.lists(st.floats(1, 20), max_size=RUNS_MIN - 1))
def test_short_series_tell_nothing(logs: list[float]) -> None:
    assert change_points(logs) == ()


@given(st.lists(st.floats(1, 20), min_size=RUNS_MIN, max_size=20), st.floats(-3, 3))
def test_another_unit_changes_nothing(logs: list[float], shift: float) -> None:
    places = [one.place for one in change_points(logs)]
    assert all(0 < place < len(logs) for place in places)
    assert places == sorted(places)
    ordered = np.round(np.array(logs), 3)
    moved = np.round(ordered + round(shift, 3), 6)
    assert [one.place for one in change_points(ordered.tolist())] == [
        one.place for one in change_points(moved.tolist())
    ]
