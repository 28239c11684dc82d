"""Warm-up, drift and stalls of a throughput series."""

from __future__ import annotations

from math import inf, isnan, nan

import numpy as np
import pytest

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.steady import SteadyState, check_window, warmup_cut

NOISE = np.random.default_rng(1).standard_normal(120)
WIGGLE = np.where(
    np.arange(120) % 2, 10.0, -10.0
)  # the same in every part: the step is all there is


def test_the_cut_follows_a_step() -> None:
    series = 1000 + WIGGLE
    series[:30] = 300
    cut = warmup_cut(series)
    assert cut.settled
    assert cut.start_s == 30


def test_a_run_that_never_settles_is_told() -> None:
    cut = warmup_cut(np.linspace(100, 1000, 120))
    assert not cut.settled
    assert "had not settled after 60 s" in cut.fact


def test_a_short_run_has_no_cut() -> None:
    cut = warmup_cut(np.full(49, 100.0))
    assert isnan(cut.start_s)
    assert not cut.settled
    assert (
        cut.fact == "the series has 49 steps, too few to find the end of the warm-up: 50 are needed"
    )


def test_steps_of_another_length_give_seconds() -> None:
    series = 1000 + WIGGLE
    series[:30] = 300
    assert warmup_cut(series, step_s=0.5).start_s == 15


def test_a_level_window_is_steady() -> None:
    window = check_window(1000 + 30 * NOISE)
    assert window.state is SteadyState.STEADY
    assert window.drift_low < 0 < window.drift_high
    assert window.effective_n > 60
    assert window.steps == 120


def test_a_ramp_is_a_drift_with_its_slope() -> None:
    # 1000 to 1500 in two minutes: 250 a minute of a mean of 1250 is 20 %.
    window = check_window(np.linspace(1000, 1500, 120) + 10 * NOISE)
    assert window.state is SteadyState.DRIFTING
    assert window.drift_low < 0.2 < window.drift_high
    assert window.drift_per_min == pytest.approx(0.2, abs=0.01)
    assert "% a minute" in window.fact


def test_a_small_but_certain_drift_is_steady() -> None:
    window = check_window(np.linspace(1000, 1020, 120) + NOISE)
    assert window.drift_low > 0
    assert window.state is SteadyState.STEADY


def test_a_noisy_window_is_unknown() -> None:
    window = check_window(np.maximum(0, 1000 + 500 * NOISE))
    assert window.state is SteadyState.UNKNOWN
    assert "too noisy" in window.fact


def test_a_slow_wave_is_unknown_for_want_of_independent_seconds() -> None:
    window = check_window(1000 + 50 * np.sin(np.arange(120) / 6))
    assert window.state is SteadyState.UNKNOWN
    assert window.effective_n < 15


def test_a_short_window_is_unknown() -> None:
    window = check_window(np.full(29, 100.0))
    assert window.state is SteadyState.UNKNOWN
    assert window.fact == "the window has 29 steps, too few to tell: 30 are needed"
    assert (window.drift_low, window.drift_high) == (-inf, inf)
    assert isnan(window.effective_n)


def test_stalls_are_counted_and_stay_in_the_mean() -> None:
    series = np.full(60, 1000.0)
    series[20:23] = 0
    series[40] = 400
    window = check_window(series)
    assert (window.stall_s, window.zero_s, window.longest_stall_s) == (4, 3, 3)
    assert window.mean == pytest.approx((56 * 1000 + 400) / 60)
    assert window.median == 1000


def test_a_window_that_mostly_stands_still_is_unknown() -> None:
    series = np.zeros(60)
    series[::3] = 100
    window = check_window(series)
    assert window.state is SteadyState.UNKNOWN
    assert window.stall_s == window.zero_s == 40
    assert window.fact == "nothing was completed in most of the window"


def test_a_constant_window_is_steady() -> None:
    window = check_window(np.full(60, 7.0))
    assert window.state is SteadyState.STEADY
    assert window.effective_n == 60


def test_an_empty_window_is_unknown() -> None:
    window = check_window(np.array([]))
    assert window.state is SteadyState.UNKNOWN
    assert window.stall_s == 0


@pytest.mark.parametrize("bad", [nan, inf, -1.0])
def test_values_that_cannot_be_are_refused(bad: float) -> None:
    series = np.full(60, 7.0)
    series[5] = bad
    with pytest.raises(PgdynoError, match="step 5 of the throughput series"):
        check_window(series)
    with pytest.raises(PgdynoError, match="step 5 of the throughput series"):
        warmup_cut(series)
