"""Rates of counted samples: their values, their errors, and when two differ."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.profile import differs, quantile, rates


def rng() -> np.random.Generator:
    return np.random.default_rng(5)


def test_a_rate_is_all_counts_by_all_of_the_divisor() -> None:
    counts = np.array([[2.0, 0.0], [4.0, 1.0]])
    values, errors = rates(counts, np.array([10.0, 20.0]), np.array([0, 0]), rng())
    assert values == pytest.approx([6 / 30, 1 / 30])
    # Never less than the error of counting.
    assert errors[0] >= np.sqrt(6) / 30
    assert errors[1] >= 1 / 30


def test_what_never_occurred_has_the_error_of_one() -> None:
    values, errors = rates(np.zeros((4, 1)), np.full(4, 5.0), np.zeros(4, dtype=int), rng())
    assert values[0] == 0
    assert errors[0] == pytest.approx(1 / 20)


def test_samples_that_come_together_have_a_larger_error() -> None:
    even, burst = np.full(10, 10.0), np.array([100.0, *[0.0] * 9])
    counts = np.column_stack([even, burst])
    _, errors = rates(counts, np.ones(10), np.zeros(10, dtype=int), rng())
    assert errors[1] > 2 * errors[0]


def test_trials_that_differ_have_a_larger_error_than_their_seconds() -> None:
    counts = np.array([[100.0]] * 10 + [[200.0]] * 10)
    one = rates(counts, np.ones(20), np.zeros(20, dtype=int), rng())
    two = rates(counts, np.ones(20), np.repeat([0, 1], 10), rng())
    assert one[0] == pytest.approx(two[0])
    assert two[1][0] > 1.5 * one[1][0]


def test_nothing_is_told_of_no_transactions() -> None:
    values, errors = rates(np.ones((3, 2)), np.zeros(3), np.zeros(3, dtype=int), rng())
    assert values.tolist() == [0, 0]
    assert np.isinf(errors).all()


def test_two_rates_differ_when_the_interval_excludes_0() -> None:
    assert differs((10.0, 1.0), (4.0, 1.0), 3.0) == (6.0, pytest.approx(4.243, abs=1e-3), True)
    assert not differs((10.0, 1.0), (6.0, 1.0), 3.0)[2]
    assert quantile(10) > quantile(30) > 2.5


@pytest.mark.method
@pytest.mark.parametrize("expected", [3.0, 30.0])
def test_equal_stages_seldom_differ(expected: float) -> None:
    """Of 1,000 functions that are the same in two stages, about 1 in 100 may seem to differ."""
    draw = np.random.default_rng(11)
    found = [
        rates(draw.poisson(expected / 10, (10, 1000)).astype(float), np.ones(10),
              np.zeros(10, dtype=int), rng())
        for _ in range(2)
    ]  # fmt: skip
    needed = quantile(10)
    pairs = (((v[n], e[n]) for v, e in found) for n in range(1000))
    wrong = sum(differs(one, other, needed)[2] for one, other in pairs)
    assert wrong <= 25
