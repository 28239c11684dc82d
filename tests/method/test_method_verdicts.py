"""How often do whole plans, compared from table to verdict, say what is not so?"""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.compare import compare_plan
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.power import rounds_for, smallest_effect
from pgdyno.stats.verdict import Comparison, Verdict
from tests.method import simulation as sim

pytestmark = pytest.mark.method

PLANS = 4000
APART = {Verdict.BETTER, Verdict.WORSE}


def plans(
    noise: sim.Noise, seed: int, rounds: int, effects: tuple[float, ...], count: int = PLANS
) -> FloatArray:
    return sim.logs(noise, seed, rounds, effects, count)


def last_comparisons(log: FloatArray, margin: float = 0.03) -> list[Comparison]:
    return [compare_plan(sim.table(one), margin=margin).against_first[-1] for one in log]


@pytest.mark.parametrize(
    ("noise", "rounds", "stages"),
    [
        (sim.normal, 3, 3),
        pytest.param(sim.normal, 3, 6, marks=pytest.mark.long),
        pytest.param(sim.normal, 10, 3, marks=pytest.mark.long),
        pytest.param(sim.heavy, 3, 3, marks=pytest.mark.long),
        pytest.param(sim.skewed, 5, 3, marks=pytest.mark.wide),
        pytest.param(sim.unequal, 5, 3, marks=pytest.mark.long),
    ],
)
def test_equal_stages_get_a_false_verdict_in_at_most_5_percent_of_plans(
    noise: sim.Noise, rounds: int, stages: int
) -> None:
    count = PLANS if noise is sim.normal and stages == 3 else PLANS // 2
    false_first = false_before = 0
    for log in plans(noise, 201, rounds, (0.0,) * stages, count):
        compared = compare_plan(sim.table(log))
        false_first += any(one.verdict in APART for one in compared.against_first)
        false_before += any(one.verdict in APART for one in compared.against_before)
    sim.assert_rate_at_most(false_first, count, 0.05)
    sim.assert_rate_at_most(false_before, count, 0.05)


@pytest.mark.wide
def test_without_holm_six_equal_stages_would_exceed_5_percent() -> None:
    count = 1000
    false = 0
    for log in plans(sim.normal, 202, 3, (0.0,) * 6, count):
        compared = compare_plan(sim.table(log))
        false += any(one.p <= 0.05 for one in compared.against_first)
    sim.assert_rate_at_least(false, count, 0.06)


@pytest.mark.parametrize(
    "effect", [0.05, *(pytest.param(effect, marks=pytest.mark.long) for effect in (0.01, 0.20))]
)
def test_a_planted_effect_is_covered_from_table_to_result(effect: float) -> None:
    seed = 210 + int(100 * effect)
    found = last_comparisons(plans(sim.normal, seed, 3, (0.0, effect), 2000))
    missed = sum(not one.low <= 1 + effect <= one.high for one in found)
    sim.assert_rate_at_most(missed, 2000, 0.05)
    wrong = sum(one.verdict is Verdict.WORSE for one in found)
    sim.assert_rate_at_most(wrong, 2000, 0.025)


def test_a_large_effect_is_found_in_three_rounds() -> None:
    found = last_comparisons(plans(sim.normal, 204, 3, (0.0, 0.5), 1000))
    better = sum(one.verdict is Verdict.BETTER for one in found)
    sim.assert_rate_at_least(better, 1000, 0.95)


@pytest.mark.parametrize(
    "rounds", [3, *(pytest.param(rounds, marks=pytest.mark.long) for rounds in sim.ROUNDS[1:])]
)
@pytest.mark.parametrize("effect", [0.03, 1 / 1.03 - 1])
def test_equivalent_is_wrong_in_at_most_half_of_5_percent_at_the_margin(
    rounds: int, effect: float
) -> None:
    # Little noise: otherwise the interval is never narrow enough, and the test cannot fail.
    count = PLANS // 2
    log = plans(sim.normal, 205, rounds, (0.0, effect), count)
    calm = log[:, :1] + (log - log[:, :1] - np.log1p(effect) * np.array([[[0], [1]]])) / 10
    calm[:, 1] += np.log1p(effect)
    wrong = sum(one.verdict is Verdict.EQUIVALENT for one in last_comparisons(calm))
    sim.assert_rate_at_most(wrong, count, 0.025)


def test_equivalence_is_found_where_it_is_true_and_the_noise_low() -> None:
    log = plans(sim.normal, 206, 5, (0.0, 0.0), 1000)
    calm = log[:, :1] + (log - log[:, :1]) / 10
    found = last_comparisons(calm)
    # With this little noise a tiny chance difference may be told apart: at most 5 % of the time.
    sim.assert_rate_at_least(sum(one.verdict is Verdict.EQUIVALENT for one in found), 1000, 0.90)


@pytest.mark.parametrize("rounds", [3, 5, 10, 20])
def test_rounds_promised_for_an_effect_show_it_four_times_in_five(rounds: int) -> None:
    sd = float(np.sqrt(2) * sim.SD)
    effect = smallest_effect(sd, rounds, 0.05) * (1 + 1e-9)
    assert rounds_for(effect, sd, 0.05) == rounds
    fit = sim.fit_last(sim.logs(sim.normal, 207, rounds, (0.0, float(np.expm1(effect)))))
    shown = int((fit.low > 0).sum())
    # The formula is that of the mean; the Hodges-Lehmann estimate loses up to 5 % of the rounds.
    sim.assert_rate_at_least(shown, sim.PLANS, 0.77)
    sim.assert_rate_at_most(shown, sim.PLANS, 0.81)


def test_the_rounds_an_undecided_plan_asks_for_are_about_right() -> None:
    # 6 % against 4.2 % spread of a pair: 7 rounds show it. What five rounds predict scatters with
    # their spread and their luck, and undecided ones are the unlucky: about right means a factor 3.
    sd = float(np.sqrt(2) * sim.SD)
    truth = rounds_for(float(np.log1p(0.06)), sd, 0.05)
    assert truth is not None
    found = last_comparisons(plans(sim.normal, 208, 5, (0.0, 0.06), 2000))
    asked = [one.rounds_needed for one in found if one.verdict is Verdict.UNDECIDED]
    assert len(asked) > 400
    reachable = [n for n in asked if n is not None]
    assert len(reachable) >= 0.95 * len(asked)
    assert min(reachable) > 5
    assert truth / 3 <= float(np.median(reachable)) <= 3 * truth
