"""Steadiness from cycle to cycle, on rates worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.steady import SteadyState
from pgdyno.stats.steady_cycles import check_cycles


def rates(*trials: list[float]) -> list[np.ndarray]:
    return [np.array(one) for one in trials]


def test_equal_cycles_are_steady_whatever_the_level_of_a_trial() -> None:
    found = check_cycles({"a": rates([100, 101], [200, 199], [150, 150.5], [120, 119.5])})["a"]
    assert found.state is SteadyState.STEADY
    assert found.low < 0 < found.high
    assert (found.cycles, found.trials) == (2, 4)


def test_a_rise_in_every_trial_is_a_drift() -> None:
    found = check_cycles({"a": rates([100, 120], [200, 241], [150, 181], [120, 143])})["a"]
    assert found.state is SteadyState.DRIFTING
    assert found.change == pytest.approx(0.20, abs=0.01)
    assert found.fact.startswith("the throughput drifts from cycle to cycle: +20")


def test_one_long_trial_tells_by_its_own_cycles() -> None:
    falling = [100 * 0.98**at for at in range(11)]
    wobble = [1.0, 1.002, 0.999, 1.001, 0.998, 1.0, 1.001, 1.0, 0.999, 1.002, 1.0]
    found = check_cycles({"a": rates([x * y for x, y in zip(falling, wobble, strict=True)])})["a"]
    assert found.state is SteadyState.DRIFTING
    assert found.change == pytest.approx(0.98**10 - 1, abs=0.01)


def test_cycles_that_differ_widely_tell_nothing() -> None:
    found = check_cycles({"a": rates([100, 140], [100, 75], [100, 130])})["a"]
    assert found.state is SteadyState.UNKNOWN
    assert "differs too much" in found.fact


@pytest.mark.parametrize("trials", [[], [[100.0]], [[]], [[100.0, 101.0]], [[100.0, 0.0]] * 4])
def test_too_few_cycles_are_unknown(trials: list[list[float]]) -> None:
    found = check_cycles({"a": rates(*trials)})["a"]
    assert found.state is SteadyState.UNKNOWN
    assert "too few whole cycles" in found.fact


def test_stages_share_their_spread_and_keep_their_slopes() -> None:
    calm = [[100.0, 100.5], [100.0, 99.5], [100.0, 100.2]]
    rising = [[100.0, 130.0], [100.0, 131.0], [100.0, 129.0]]
    found = check_cycles({"calm": rates(*calm), "rising": rates(*rising)})
    assert found["calm"].state is SteadyState.STEADY
    assert found["rising"].state is SteadyState.DRIFTING
    alone = check_cycles({"calm": rates(*calm)})["calm"]
    assert alone.high - alone.low != found["calm"].high - found["calm"].low
