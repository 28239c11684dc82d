"""The noise floor, and what it promises of future plans."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pgdyno.model.errors import PgdynoError
from pgdyno.model.plan import ROUNDS_MAX
from pgdyno.stats.noise import noise_floor
from pgdyno.stats.power import rounds_for, smallest_effect
from pgdyno.stats.table import Table


def table(tpm: np.ndarray) -> Table:
    names = tuple(f"s{number}" for number in range(tpm.shape[0]))
    return Table(names, tuple(range(1, tpm.shape[1] + 1)), tpm)


def test_two_twins_give_the_spread_of_their_pairs() -> None:
    tpm = 1000 * np.exp(0.02 * np.random.default_rng(2).standard_normal((2, 6)))
    pairs = np.log(tpm[1] / tpm[0])
    floor = noise_floor(table(tpm), [["s0", "s1"]])
    assert floor.sd == pytest.approx(np.sqrt((pairs**2).mean())), "about 1, which is the truth"
    assert floor.freedom == 6
    assert floor.widest == pytest.approx(np.expm1(np.abs(pairs).max()))
    # Interval of a standard deviation, by hand: 6 s^2 over the chi-square quantiles.
    assert floor.sd_high == pytest.approx(floor.sd * np.sqrt(6 / stats.chi2.ppf(0.025, 6)))
    assert floor.sd_low < floor.sd < floor.sd_high


def test_twins_that_differ_alike_in_every_round_are_noise() -> None:
    """As one whose disk was busy whenever its turn came: x0.602, x0.562 and x0.557 of its twin."""
    floor = noise_floor(table(np.array([[1000.0] * 3, [602.0, 562.0, 557.0]])), [["s0", "s1"]])
    assert floor.sd == pytest.approx(0.557, abs=0.002)
    assert floor.shown[0].effect > 0.8, "no smaller effect can be told from it"


def test_groups_are_pooled_and_their_difference_does_not_count() -> None:
    tpm = 1000 * np.exp(0.02 * np.random.default_rng(2).standard_normal((4, 6)))
    alone = [noise_floor(table(tpm), [pair]) for pair in (["s0", "s1"], ["s2", "s3"])]
    tpm[2:] *= 3
    both = noise_floor(table(tpm), [["s0", "s1"], ["s2", "s3"]])
    assert both.freedom == 12
    assert both.sd**2 == pytest.approx((alone[0].sd ** 2 + alone[1].sd ** 2) / 2)


def test_more_rounds_show_smaller_effects_and_smaller_effects_need_more_rounds() -> None:
    tpm = 1000 * np.exp(0.02 * np.random.default_rng(2).standard_normal((2, 6)))
    floor = noise_floor(table(tpm), [["s0", "s1"]])
    effects = [shown.effect for shown in floor.shown]
    assert effects == sorted(effects, reverse=True)
    rounds = [needed.rounds for needed in floor.needed]
    assert all(isinstance(count, int) for count in rounds)
    assert rounds == sorted(rounds, key=lambda count: -(count or 0))
    assert all(one.effect_worst > one.effect for one in floor.shown)


def test_a_round_with_a_gap_is_left_out_and_told() -> None:
    tpm = 1000 * np.exp(0.02 * np.random.default_rng(2).standard_normal((2, 6)))
    tpm[1, 3] = np.nan
    floor = noise_floor(table(tpm), [["s0", "s1"]])
    assert floor.freedom == 5
    assert "1 round is left out" in floor.warnings[0]


def test_too_little_or_too_perfect_data_is_refused() -> None:
    with pytest.raises(PgdynoError, match="fewer than 2 rounds"):
        noise_floor(table(np.array([[1000.0], [1010.0]])), [["s0", "s1"]])
    with pytest.raises(PgdynoError, match="agree exactly"):
        noise_floor(table(np.full((2, 3), 1000.0)), [["s0", "s1"]])
    with pytest.raises(PgdynoError, match="two names are needed"):
        noise_floor(table(np.full((2, 3), 1000.0)), [["s0"]])


@pytest.mark.parametrize("power", [0.8, 0.9])
@pytest.mark.parametrize("rounds", [2, 3, 5, 10, 30, 60, 61, 200])
def test_the_smallest_effect_has_the_power_that_scipy_computes(rounds: int, power: float) -> None:
    effect = smallest_effect(1.0, rounds, 0.05, power)
    critical = stats.t.ppf(0.975, rounds - 1)
    computed = stats.nct.sf(critical, rounds - 1, effect * np.sqrt(rounds))
    assert computed == pytest.approx(power, abs=0.002)


def test_an_effect_out_of_reach_has_no_number_of_rounds() -> None:
    assert rounds_for(0.0, 0.1, 0.05) is None
    assert rounds_for(-0.1, 0.1, 0.05) is None
    assert rounds_for(1e-6, 0.1, 0.05) is None
    assert rounds_for(smallest_effect(0.1, ROUNDS_MAX, 0.05) * (1 + 1e-9), 0.1, 0.05) == ROUNDS_MAX
    assert rounds_for(100.0, 0.1, 0.05) == 2
