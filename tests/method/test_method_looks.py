"""Looks: are the critical values right, and do plans that stop when decided err as they promise?

Bounds on errors and rounds; the tables of docs/concepts/statistics.md are held by
`test_method_operating`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from math import log1p

import numpy as np
import pytest

from pgdyno.model.looks import LOOKS, OPEN_MAX
from pgdyno.stats.compare import compare_at_looks
from pgdyno.stats.interval import FloatArray, estimate
from pgdyno.stats.looks import dependence, judge_at_looks
from pgdyno.stats.sequential import CRITICAL, boundaries, paths, simulated
from pgdyno.stats.table import Table
from pgdyno.stats.verdict import Comparison, Verdict
from tests.method import simulation as sim

pytestmark = pytest.mark.method

PAIR_SD = 0.026  # of one paired log ratio
MARGIN = 0.03


@dataclass(frozen=True)
class Ended:
    """How simulated plans of two stages ended."""

    verdicts: Counter[Verdict]
    rounds: FloatArray  # that were measured
    covered: int  # whose last interval holds the truth


def last_look(pairs: FloatArray, rounds_max: int) -> Comparison:
    """What is said of one plan of two stages once it stops."""
    table = Table(
        ("base", "stage"), tuple(range(1, rounds_max + 1)),
        1000 * np.exp(np.stack([np.zeros(rounds_max), pairs])),
    )  # fmt: skip
    return judge_at_looks(table, [("stage", "base")], "first", rounds_max, MARGIN)[0]


def ended(pairs: FloatArray, effect: float) -> Ended:
    found = [last_look(row, pairs.shape[1]) for row in pairs]
    truth = 1 + effect
    return Ended(
        Counter(one.verdict for one in found), np.array([one.n for one in found]),
        sum(one.low <= truth <= one.high for one in found),
    )  # fmt: skip


def noise(seed: int, count: int, rounds: int, sd: float = PAIR_SD) -> FloatArray:
    return sd * np.random.default_rng(seed).standard_normal((count, rounds))


@pytest.mark.parametrize(
    "rounds_max", [8, *(pytest.param(one, marks=pytest.mark.wide) for one in LOOKS if one != 8)]
)
def test_the_critical_values_are_those_of_a_simulation_with_other_numbers(rounds_max: int) -> None:
    looks = LOOKS[rounds_max]
    statistics = paths(looks, 60_000, seed=7)
    kept = CRITICAL[rounds_max][0]
    np.testing.assert_allclose(boundaries(statistics, looks, 0.05), kept, rtol=0.04)
    crossed = (statistics > np.array(kept)).any(axis=1).sum()
    sim.assert_rate_at_most(int(crossed), len(statistics), 0.0505)
    sim.assert_rate_at_least(int(crossed), len(statistics), 0.0465)


@pytest.mark.long
@pytest.mark.parametrize("rounds_max", LOOKS)
def test_the_critical_values_of_many_comparisons_are_what_is_simulated(rounds_max: int) -> None:
    np.testing.assert_allclose(simulated(rounds_max), CRITICAL[rounds_max], atol=0.006)


@pytest.mark.parametrize("rounds_max", [8, pytest.param(20, marks=pytest.mark.wide)])
def test_of_equal_stages_at_most_one_in_twenty_gets_a_false_verdict(rounds_max: int) -> None:
    count = 2_000
    found = ended(noise(301, count, rounds_max), 0.0)
    sim.assert_rate_at_most(
        found.verdicts[Verdict.BETTER] + found.verdicts[Verdict.WORSE], count, 0.05
    )
    sim.assert_rate_at_most(count - found.covered, count, 0.05)


def test_peeking_after_every_round_errs_three_times_as_often() -> None:
    # What the critical values are for: the same plans, stopped at the first plain 95 % interval.
    count = 2_000
    pairs = noise(301, count, 20)
    shown = np.zeros(count, dtype=bool)
    for rounds in range(3, 21):
        fit = estimate(pairs[:, :rounds], 0.95)
        shown |= (fit.low > 0) | (fit.high < 0)
    sim.assert_rate_at_least(int(shown.sum()), count, 0.12)


@pytest.mark.parametrize(
    ("effect", "better", "rounds"), [(0.10, 0.99, 4.7), (0.05, 0.97, 7.5), (0.03, 0.9, 12.0)]
)
def test_effects_are_found_in_fewer_rounds_the_larger_they_are(
    effect: float, better: float, rounds: float
) -> None:
    count = 1_000
    found = ended(noise(302, count, 20) + log1p(effect), effect)
    sim.assert_rate_at_least(found.verdicts[Verdict.BETTER], count, better)
    sim.assert_rate_at_most(count - found.covered, count, 0.05)
    assert found.rounds.mean() < rounds


def test_equivalence_is_wrong_in_at_most_half_of_5_percent_at_the_margin() -> None:
    count = 2_000
    found = ended(noise(303, count, 20, sd=0.01) + log1p(MARGIN), MARGIN)
    sim.assert_rate_at_most(found.verdicts[Verdict.EQUIVALENT], count, 0.025)


def test_what_is_given_up_would_rarely_have_been_decided() -> None:
    # 1 % of effect in 5 % of noise: 20 rounds show it one time in ten, and most plans see that.
    count = 500
    found = ended(noise(304, count, 20, sd=0.05) + log1p(0.01), 0.01)
    sim.assert_rate_at_most(found.verdicts[Verdict.BETTER], count, 0.12)
    assert found.rounds.mean() < 17


@pytest.mark.wide
def test_a_family_of_equal_stages_errs_at_most_once_in_twenty() -> None:
    count, stages = 1_000, 4
    rng = np.random.default_rng(305)
    wrong = 0
    for _ in range(count):
        logs = PAIR_SD / np.sqrt(2) * rng.standard_normal((stages, 12))
        table = Table(tuple("abcd"), tuple(range(1, 13)), 1000 * np.exp(logs))
        verdicts = {one.verdict for one in compare_at_looks(table, 12).against_first}
        wrong += bool(verdicts & {Verdict.BETTER, Verdict.WORSE})
    sim.assert_rate_at_most(wrong, count, 0.05)
    assert stages - 1 <= OPEN_MAX


def test_rounds_that_resemble_the_one_before_are_noticed() -> None:
    def warned(correlation: float, rounds: int) -> int:
        rng = np.random.default_rng(306)
        shocks = rng.standard_normal((2_000, rounds + 50))
        values = np.zeros_like(shocks)
        for at in range(1, rounds + 50):
            values[:, at] = correlation * values[:, at - 1] + shocks[:, at]
        return sum(dependence(row) is not None for row in values[:, 50:])

    sim.assert_rate_at_most(warned(0.0, 12), 2_000, 0.055)
    sim.assert_rate_at_least(warned(0.3, 20), 2_000, 0.25)
    sim.assert_rate_at_least(warned(0.3, 40), 2_000, 0.50)
