"""How often do steadiness, noise floor and outlier warnings say what is not so?"""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.interval import FloatArray
from pgdyno.stats.noise import noise_floor
from pgdyno.stats.steady import SteadyState, check_window, fit_trend, warmup_cut
from pgdyno.stats.steady_cycles import check_cycles
from pgdyno.stats.table import outliers
from tests.method import simulation as sim

pytestmark = pytest.mark.method

WINDOWS = 10_000


def correlated(phi: float, steps: int, seed: int, windows: int = WINDOWS) -> FloatArray:
    """Series of spread one whose neighbours correlate by `phi`, shape `(windows, steps)`."""
    rng = np.random.default_rng(seed)
    fresh = np.sqrt(1 - phi**2) * rng.standard_normal((windows, steps))
    series = np.empty_like(fresh)
    series[:, 0] = rng.standard_normal(windows)
    for step in range(1, steps):
        series[:, step] = phi * series[:, step - 1] + fresh[:, step]
    return series


@pytest.mark.parametrize(
    ("phi", "steps", "floor"),
    [
        (0.0, 30, 0.95),
        (0.0, 60, 0.95),
        (0.5, 120, 0.94),
        (0.8, 300, 0.94),
        # A correlation as long as a batch: six seconds against five. The windows that fall short
        # here are those that `check_window` calls unknown for want of independent values.
        (0.5, 60, 0.93),
        (0.8, 60, 0.87),
    ],
)
@pytest.mark.parametrize("change", [0.0, 2.0])
def test_the_drift_interval_covers(phi: float, steps: int, floor: float, change: float) -> None:
    windows = correlated(phi, steps, 301) + change * np.arange(steps) / steps
    trend = fit_trend(windows, 0.95)
    hits = int((np.abs(trend.change - change) <= trend.half).sum())
    sim.assert_rate_at_least(hits, WINDOWS, floor)


@pytest.mark.parametrize(
    ("phi", "steps", "ceiling"),
    [
        pytest.param(0.0, 30, 0.05, marks=pytest.mark.long),
        (0.0, 60, 0.05),
        (0.5, 60, 0.055),
        pytest.param(0.8, 60, 0.05, marks=pytest.mark.long),
        pytest.param(0.95, 60, 0.05, marks=pytest.mark.long),
        pytest.param(0.8, 300, 0.06, marks=pytest.mark.long),
        # Correlation over a batch's length and enough steps not to be refused: the worst case.
        (0.9, 300, 0.075),
    ],
)
def test_a_steady_window_is_rarely_called_drifting(phi: float, steps: int, ceiling: float) -> None:
    count = 2000
    series = 1000 + 100 * correlated(phi, steps, 302, count)
    states = [check_window(one).state for one in series]
    sim.assert_rate_at_most(states.count(SteadyState.DRIFTING), count, ceiling)


def test_a_slow_wander_under_noise_is_called_drifting_as_often_as_the_documents_say() -> None:
    # Noise of each second hides the correlation that would have refused the window.
    count, steps = 3000, 60
    rng = np.random.default_rng(309)
    wander = correlated(0.9, steps, 310, count) + 0.5 * rng.standard_normal((count, steps))
    states = [check_window(1000 + 100 * one).state for one in wander]
    drifting = states.count(SteadyState.DRIFTING)
    sim.assert_rate_at_least(drifting, count, 0.06)
    sim.assert_rate_at_most(drifting, count, 0.11)


@pytest.mark.parametrize("phi", [0.0, 0.5])
def test_a_drift_beyond_the_tolerance_is_called_steady_in_at_most_5_percent(phi: float) -> None:
    count, steps = 2000, 120
    ramp = 1 + 0.101 * (np.arange(steps) - (steps - 1) / 2) / steps
    series = 1000 * ramp + 30 * correlated(phi, steps, 303, count)
    states = [check_window(one).state for one in series]
    sim.assert_rate_at_most(states.count(SteadyState.STEADY), count, 0.05)


def test_a_clear_drift_is_found_and_a_calm_window_called_steady() -> None:
    count, steps = 500, 120
    noise = 30 * correlated(0.5, steps, 304, count)
    ramp = 1 + 0.3 * (np.arange(steps) - (steps - 1) / 2) / steps
    drifting = [check_window(1000 * ramp + one).state for one in noise]
    steady = [check_window(1000 + one).state for one in noise]
    # Some windows look too correlated to tell; none may be called the opposite.
    assert SteadyState.STEADY not in drifting
    assert SteadyState.DRIFTING not in steady
    sim.assert_rate_at_least(drifting.count(SteadyState.DRIFTING), count, 0.90)
    sim.assert_rate_at_least(steady.count(SteadyState.STEADY), count, 0.90)


@pytest.mark.parametrize(
    "ramp_s", [20, *(pytest.param(ramp_s, marks=pytest.mark.long) for ramp_s in (0, 45))]
)
def test_the_warm_up_cut_lies_near_the_end_of_the_ramp(ramp_s: int) -> None:
    count, steps = 500, 150
    shape = np.ones(steps)
    shape[:ramp_s] = np.linspace(0.2, 1.0, ramp_s, endpoint=False)
    series = np.maximum(0, 1000 * shape + 50 * correlated(0.3, steps, 305, count))
    cuts = [warmup_cut(one) for one in series]
    # A cut too early would bias the number. One too late costs length only, and the rule is known
    # for it: one series in ten without any warm-up.
    sim.assert_rate_at_least(sum(cut.start_s >= ramp_s - 10 for cut in cuts), count, 0.98)
    sim.assert_rate_at_least(sum(cut.start_s <= ramp_s + 30 for cut in cuts), count, 0.80)


def test_the_noise_floor_interval_holds_the_true_spread() -> None:
    count = 5000
    truth = np.sqrt(2) * sim.SD
    hits = 0
    for log in sim.logs(sim.normal, 306, 5, (0.0, 0.0), count):
        floor = noise_floor(sim.table(log), [["stage0", "stage1"]])
        hits += floor.sd_low <= truth <= floor.sd_high
    sim.assert_rate_at_least(hits, count, 0.93)
    sim.assert_rate_at_most(hits, count, 0.96)


@pytest.mark.parametrize(
    "rounds", [3, *(pytest.param(rounds, marks=pytest.mark.long) for rounds in (5, 10))]
)
def test_undisturbed_plans_are_rarely_warned_of_interference(rounds: int) -> None:
    count = 2000
    warned = sum(
        bool(outliers(sim.table(log)))
        for log in sim.logs(sim.normal, 307, rounds, (0.0, 0.5, 0.5), count)
    )
    sim.assert_rate_at_most(warned, count, 0.02)


@pytest.mark.parametrize(("rounds", "found_min"), [(3, 0.78), (5, 0.95)])
def test_a_trial_20_spreads_off_is_named(rounds: int, found_min: float) -> None:
    count = 1000
    logs = sim.logs(sim.normal, 308, rounds, (0.0, 0.5, 0.5), count)
    logs[:, 1, 1] -= 20 * sim.SD
    named = 0
    for log in logs:
        found = outliers(sim.table(log))
        named += bool(found) and found[0].stages == ("stage1",) and found[0].round == 2
    sim.assert_rate_at_least(named, count, found_min)


@pytest.mark.parametrize(("rounds", "stages", "cycles"), [(3, 3, 2), (5, 3, 2), (1, 1, 12)])
def test_cycles_that_do_not_drift_are_rarely_called_drifting(
    rounds: int, stages: int, cycles: int
) -> None:
    found = _cycle_states(rounds, stages, cycles, change=0.0, seed=311)
    sim.assert_rate_at_most(found.count(SteadyState.DRIFTING), len(found), 0.055)


@pytest.mark.parametrize("rounds", [3, 5])
def test_a_drift_beyond_the_tolerance_is_called_steady_by_cycles_in_at_most_5_percent(
    rounds: int,
) -> None:
    found = _cycle_states(rounds, 3, 2, change=0.101, seed=312)
    sim.assert_rate_at_most(found.count(SteadyState.STEADY), len(found), 0.05)


def _cycle_states(
    rounds: int, stages: int, cycles: int, *, change: float, seed: int
) -> list[SteadyState]:
    """The first stage's states in simulated plans, whose trials have levels of their own."""
    rng = np.random.default_rng(seed)
    states = []
    for _ in range(2000):
        level = 0.2 * rng.standard_normal((stages, rounds, 1))
        log = level + 0.04 * rng.standard_normal((stages, rounds, cycles))
        log[0] += np.log1p(change) * np.arange(cycles) / (cycles - 1)
        plan = {f"stage{at}": list(np.exp(one)) for at, one in enumerate(log)}
        states.append(check_cycles(plan)["stage0"].state)
    return states
