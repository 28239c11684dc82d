"""Runs of different days: the interval holds what was planted at its rate, and is wide enough."""

from __future__ import annotations

from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.between_runs import (
    RunMean,
    apart,
    falls_below,
    least_found,
    run_mean,
    session_noise,
)

SESSION_SD, ROUND_SD = 0.04, 0.02
EFFECT = log(1.10)
CASES = 4000


def runs(rng: np.random.Generator, count: int, rounds: int, effect: float = 0.0) -> list[RunMean]:
    """Runs of a stage, each of its own session."""
    found = []
    for session in rng.normal(0.0, SESSION_SD, count):
        values = 30_000 * np.exp(effect + session + rng.normal(0.0, ROUND_SD, rounds))
        found.append(run_mean(values.tolist()))
    return found


def held(kept: int, rounds: int, few: int, *, among: bool) -> float:
    """How often the interval holds the planted effect.

    Args:
        kept: Runs that tell the noise.
        rounds: Of each of them.
        few: Rounds of the run that is asked about.
        among: Whether the base is one of those runs.
    """
    rng = np.random.default_rng((18, kept, rounds, few))
    hits = 0
    for _ in range(CASES):
        known = runs(rng, kept, rounds)
        base = known[0] if among else runs(rng, 1, rounds)[0]
        (one,) = runs(rng, 1, few, EFFECT)
        found = apart(one, base, session_noise([known]), 0.95)
        hits += found.low <= exp(EFFECT) <= found.high
    return hits / CASES


@pytest.mark.parametrize(("kept", "rounds", "few"), [(3, 5, 5), (3, 3, 3), (6, 5, 5), (10, 5, 2)])
def test_the_interval_holds_a_planted_effect(kept: int, rounds: int, few: int) -> None:
    # 4,000 cases: the standard error of 95 % is 0.34 points.
    assert 0.94 <= held(kept, rounds, few, among=False) <= 0.965


def test_of_a_run_that_tells_the_noise_it_is_wide_enough() -> None:
    assert held(3, 5, 5, among=True) >= 0.95


def test_pairing_rounds_of_different_days_would_hold_it_far_too_seldom() -> None:
    """Why runs are the unit: rounds within a run know nothing of its session."""
    rng = np.random.default_rng(18)
    hits = 0
    for _ in range(1000):
        one, base = (rng.normal(0.0, SESSION_SD) + rng.normal(0.0, ROUND_SD, 5) for _ in range(2))
        pairs = one - base
        half = 2.776 * pairs.std(ddof=1) / sqrt(5)
        hits += abs(pairs.mean()) <= half
    assert hits / 1000 < 0.6


def test_false_alarms_are_as_rare_as_the_level_says() -> None:
    rng = np.random.default_rng(19)
    alarms = 0
    for _ in range(CASES):
        noise = session_noise([runs(rng, 4, 5)])
        one, base = runs(rng, 2, 5)
        alarms += apart(one, base, noise, 0.95).p <= 0.05
    assert 0.035 <= alarms / CASES <= 0.065


def test_what_stages_differ_by_is_no_noise() -> None:
    rng = np.random.default_rng(20)
    slow, fast = runs(rng, 3, 5), runs(rng, 4, 5, log(3.0))
    both = session_noise([slow, fast])

    assert both.freedom == 5
    assert both.runs == 7
    alone = [session_noise([group]) for group in (slow, fast)]
    assert both.sd**2 == pytest.approx((2 * alone[0].sd ** 2 + 3 * alone[1].sd ** 2) / 5)
    assert both.sd_low < both.sd < both.sd_high


def test_groups_of_two_tell_nothing_and_are_left_out() -> None:
    rng = np.random.default_rng(21)
    three, two = runs(rng, 3, 5), runs(rng, 2, 5)
    assert session_noise([three, two]) == session_noise([three])
    with pytest.raises(
        PgdynoError, match="it takes 3 further runs of one stage on one host, there are 2"
    ):
        session_noise([two])
    with pytest.raises(PgdynoError, match="there are 0"):
        session_noise([])


def test_copies_of_a_run_are_no_runs() -> None:
    with pytest.raises(PgdynoError, match="agree to the digit"):
        session_noise([[run_mean([100.0, 101.0])] * 3])


def test_fewer_rounds_widen_the_interval() -> None:
    rng = np.random.default_rng(22)
    noise = session_noise([runs(rng, 5, 8)])
    base = run_mean([100.0] * 8)
    widths = [
        log(found.high / found.low)
        for rounds in (1, 3, 8, 20)
        for found in [apart(run_mean([100.0] * rounds), base, noise, 0.95)]
    ]
    assert widths[0] > widths[1] > widths[2] == pytest.approx(widths[3])


@given(
    st.lists(st.floats(10, 1e6), min_size=1, max_size=6),
    st.lists(st.floats(10, 1e6), min_size=1, max_size=6),
    st.floats(0.5, 0.999),
)
def test_swapping_two_runs_mirrors_the_answer(
    one: list[float], other: list[float], confidence: float
) -> None:
    noise = session_noise([[run_mean([100.0, 103.0]), run_mean([98.0]), run_mean([105.0])]])
    there = apart(run_mean(one), run_mean(other), noise, confidence)
    back = apart(run_mean(other), run_mean(one), noise, confidence)

    assert there.low <= there.ratio <= there.high
    assert there.ratio * back.ratio == pytest.approx(1)
    assert there.low * back.high == pytest.approx(1)
    assert there.p == pytest.approx(back.p)


def test_what_completed_nothing_has_no_mean() -> None:
    for values in ([], [0.0, 10.0]):
        with pytest.raises(PgdynoError, match="has no mean"):
            run_mean(values)


@pytest.mark.parametrize("kept", [3, 6, 12])
def test_a_gate_fails_what_is_well_enough_in_a_fortieth_of_cases_at_most(kept: int) -> None:
    rng = np.random.default_rng((23, kept))
    alarms = 0
    for _ in range(CASES):
        noise = session_noise([runs(rng, kept, 5)])
        (base,), (one,) = runs(rng, 1, 5), runs(rng, 1, 5, log(0.95))
        found = apart(one, base, noise, 0.95)
        alarms += falls_below(found.low, found.high, 0.95) is True
    # 2.5 % and three standard errors
    assert alarms / CASES <= 0.0325


def test_a_gate_finds_the_drop_that_it_says_it_finds() -> None:
    rng = np.random.default_rng(24)
    noise = session_noise([runs(rng, 200, 5)])  # as good as known
    drop = least_found(0.95, noise, 0.95)
    hits = 0
    for _ in range(CASES):
        (base,), (one,) = runs(rng, 1, 5), runs(rng, 1, 5, log(drop))
        found = apart(one, base, noise, 0.95)
        hits += falls_below(found.low, found.high, 0.95) is True
    assert 0.75 <= hits / CASES <= 0.85


def test_what_is_not_known_neither_falls_below_nor_passes() -> None:
    assert falls_below(0.9, 1.0, 0.95) is None
    assert falls_below(0.95, 1.0, 0.95) is False
    assert falls_below(0.8, 0.94, 0.95) is True
