"""How often is a stage called better that fails, by the rounds that it lived through?"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from pgdyno.stats.compare import compare_plan
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.table import Table, attempts_of
from pgdyno.stats.verdict import Comparison, Verdict
from tests.method import simulation as sim

pytestmark = pytest.mark.method
PLANS = 1000
APART = {Verdict.BETTER, Verdict.WORSE}


def compared(log: FloatArray, failed: npt.NDArray[np.bool_], *, told: bool = True) -> Comparison:
    """Two stages, shape `(2, rounds)`, of which the second failed where it says so.

    `told` False is the mutant: failed trials count as if they had never been run.
    """
    whole = sim.table(log)
    tpm = whole.tpm.copy()
    tpm[1, failed] = np.nan
    base, stage = whole.stages
    attempts = attempts_of(
        [
            *((base, (number, 1), False) for number in whole.rounds),
            *(
                (stage, (number, 1), bool(fell))
                for number, fell in zip(whole.rounds, failed, strict=True)
            ),
        ]
    )
    table = Table(whole.stages, whole.rounds, tpm)
    (one,) = compare_plan(replace(table, attempts=attempts) if told else table).against_first
    return one


def slowest_fail(log: FloatArray) -> npt.NDArray[np.bool_]:
    """What would have been more than half a spread slower than its base ends in a timeout."""
    return np.asarray(log[1] - log[0] < -0.5 * np.sqrt(2) * sim.SD)


@pytest.mark.parametrize(
    "rounds", [5, *(pytest.param(one, marks=pytest.mark.wide) for one in (10, 20))]
)
def test_a_stage_that_loses_its_slow_trials_is_not_better_for_it(rounds: int) -> None:
    plans = sim.logs(sim.normal, 301, rounds, (0.0, 0.0), PLANS)
    found = [compared(log, slowest_fail(log)) for log in plans]
    better = sum(one.verdict is Verdict.BETTER for one in found)
    sim.assert_rate_at_most(better, PLANS, 0.025)


def test_by_its_survivors_alone_it_would_be() -> None:
    plans = sim.logs(sim.normal, 301, 10, (0.0, 0.0), PLANS)
    found = [compared(log, slowest_fail(log), told=False) for log in plans]
    sim.assert_rate_at_least(sum(one.verdict is Verdict.BETTER for one in found), PLANS, 0.20)


@pytest.mark.parametrize("noise", [sim.normal, pytest.param(sim.heavy, marks=pytest.mark.wide)])
@pytest.mark.parametrize(
    "rounds", [3, *(pytest.param(one, marks=pytest.mark.wide) for one in (5, 12))]
)
def test_equal_stages_of_which_one_fails_by_chance(noise: sim.Noise, rounds: int) -> None:
    rng = np.random.default_rng(302)
    plans = sim.logs(noise, 303, rounds, (0.0, 0.0), PLANS)
    found = [compared(log, rng.random(rounds) < 0.2) for log in plans]
    sim.assert_rate_at_most(sum(one.verdict in APART for one in found), PLANS, 0.05)


@pytest.mark.parametrize("rounds", [5, 10, 40])
def test_who_fails_in_two_trials_of_five_is_not_better_however_fast(rounds: int) -> None:
    # Of the ranks, the highest 40 % are more than half: no number of rounds outweighs them.
    failed = np.arange(rounds) % 5 < 2
    plans = sim.logs(sim.normal, 304, rounds, (0.0, 4.0), 200)
    assert not any(compared(log, failed).verdict is Verdict.BETTER for log in plans)


def test_one_failure_in_fifteen_rounds_is_outweighed_by_a_large_effect() -> None:
    failed = np.arange(15) == 7
    plans = sim.logs(sim.normal, 305, 15, (0.0, 0.5), 500)
    better = sum(compared(log, failed).verdict is Verdict.BETTER for log in plans)
    sim.assert_rate_at_least(better, 500, 0.98)
