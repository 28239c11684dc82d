"""Looks: what is decided at which, what stays open, and what is given up."""

from __future__ import annotations

from math import inf, isnan, sqrt

import numpy as np
import pytest

from pgdyno.model.looks import LOOKS, OPEN_MAX
from pgdyno.stats.compare import compare_at_looks, compare_pair, ratio_between
from pgdyno.stats.interval import FloatArray
from pgdyno.stats.looks import dependence
from pgdyno.stats.sequential import CRITICAL, critical
from pgdyno.stats.table import Table, attempts_of
from pgdyno.stats.verdict import Comparison, Verdict

NOISE = np.array([0.4, -1.0, 0.9, -0.2, -0.9, 1.1, 0.3, -0.7, 1.0, -0.5, 0.2, -0.6] * 4)


def plan(rounds: int, *, of: int = 20, sd: float = 0.02, **ratios: float) -> Table:
    """A base and stages at these ratios of it, measured for some rounds of a plan of more."""
    rows = [np.zeros(of)]
    rows += [np.log(ratio) + sd * np.roll(NOISE, 5 * n)[:of] for n, ratio in
             enumerate(ratios.values())]  # fmt: skip
    tpm: FloatArray = 1000 * np.exp(np.array(rows))
    tpm[:, rounds:] = np.nan
    return Table(("base", *ratios), tuple(range(1, of + 1)), tpm)


def judged(table: Table, rounds_max: int = 20) -> dict[str, Comparison]:
    return {one.stage: one for one in compare_at_looks(table, rounds_max).against_first}


def test_before_the_first_look_nothing_is_said_and_the_ratio_is_shown() -> None:
    one = judged(plan(3, a=1.5))["a"]
    assert (one.verdict, one.look, one.stopped, one.n) == (Verdict.UNDECIDED, None, False, 3)
    assert one.reason == "the first look comes after 4 rounds"
    assert one.ratio == pytest.approx(1.5, rel=0.05)
    assert (one.low, one.high) == (0, inf)


def test_a_large_effect_is_decided_at_the_first_look_and_stays_so() -> None:
    early, later = judged(plan(4, a=1.5))["a"], judged(plan(9, a=1.5))["a"]
    assert (early.verdict, early.look, early.stopped, early.n) == (Verdict.BETTER, 4, True, 4)
    assert early.reason == "at the look after 4 rounds the interval lies above 1"
    assert "group-sequential, 5 looks" in early.method
    assert isnan(early.p)
    assert isnan(early.p_adjusted)
    assert repr(later) == repr(early)


def test_what_came_after_the_decision_does_not_change_it() -> None:
    table = plan(8, a=1.5)
    table.tpm[1, 4:8] = 500.0
    assert judged(table)["a"].verdict is Verdict.BETTER


def test_between_two_looks_the_last_one_counts() -> None:
    for rounds in (6, 7):
        one = judged(plan(rounds, a=1.02))["a"]
        assert (one.look, one.n) == (6, 6)
    assert judged(plan(8, a=1.02))["a"].look == 8


def test_a_look_waits_until_all_trials_of_its_rounds_have_ended() -> None:
    table = plan(6, a=1.5)
    table.tpm[1, 3] = np.nan  # round 4 is under way
    assert judged(table)["a"].look is None


def test_the_interval_is_as_wide_as_the_critical_value_of_one_comparison() -> None:
    one = judged(plan(4, a=1.5, b=1.2))["a"]
    half = critical(20, 1, 0) * one.spread / sqrt(4)
    assert np.log(one.high / one.low) == pytest.approx(2 * half)


def test_each_comparison_that_is_decided_makes_the_others_easier() -> None:
    # Alone `a` would be found; beside one open comparison it is not; beside a decided one it is.
    effect = np.exp((critical(20, 1, 0) + critical(20, 2, 0)) / 2 * 0.02 * 0.911 / 2)
    alone = judged(plan(4, a=effect))["a"]
    open_too = judged(plan(4, a=effect, b=1.001))["a"]
    decided = judged(plan(4, a=effect, b=1.9))
    assert alone.verdict is Verdict.BETTER
    assert open_too.verdict is Verdict.UNDECIDED
    assert "with 2 comparisons open that is not yet beyond chance" in open_too.reason
    assert decided["b"].verdict is decided["a"].verdict is Verdict.BETTER


def test_a_stage_that_is_slower_is_worse() -> None:
    one = judged(plan(4, a=0.5))["a"]
    assert (one.verdict, one.stopped) == (Verdict.WORSE, True)
    assert one.reason == "at the look after 4 rounds the interval lies below 1"


def test_the_same_within_the_margin_is_equivalent_and_dropped() -> None:
    one = judged(plan(20, a=1.0, sd=0.001))["a"]
    assert (one.verdict, one.look, one.stopped) == (Verdict.EQUIVALENT, 4, True)


def test_what_no_look_can_decide_is_given_up_with_the_rounds_it_would_take() -> None:
    one = judged(plan(12, a=1.0, sd=0.2))["a"]
    assert (one.verdict, one.stopped) == (Verdict.UNDECIDED, True)
    assert "no verdict within 20 rounds is likely" in one.reason
    assert one.look is not None
    assert one.look < 20
    assert one.rounds_needed is None or one.rounds_needed > 20


def test_the_last_look_ends_it() -> None:
    one = judged(plan(12, of=12, a=1.04, sd=0.07), 12)["a"]
    assert (one.verdict, one.look, one.stopped) == (Verdict.UNDECIDED, 12, True)


def test_failed_trials_make_a_look_stricter_and_no_survivors_win() -> None:
    table = plan(4, a=1.5)
    table.tpm[1, 1] = np.nan
    failing = Table(table.stages, table.rounds, table.tpm, attempts_of(
        (stage, (round_, 1), stage == "a" and round_ == 2)
        for stage in table.stages for round_ in range(1, 5)
    ))  # fmt: skip
    one = judged(failing)["a"]
    assert one.verdict is Verdict.UNDECIDED
    assert one.failures == "1 of 4 trials of a failed"
    assert (one.look, one.n, one.stopped) == (4, 3, False)


def test_a_stage_that_stood_still_gets_no_verdict() -> None:
    table = plan(4, a=1.5)
    table.tpm[1, 2] = 0
    one = judged(table)["a"]
    assert one.verdict is Verdict.UNDECIDED
    assert "completed nothing in round 3" in one.reason
    assert one.stopped, "no further round could change that"


def test_rounds_that_agree_to_the_digit_are_followed_by_more() -> None:
    equal = plan(4, a=1.5)
    equal.tpm[1] = equal.tpm[0]  # as counts of a load at a fixed rate may
    one = judged(equal)["a"]
    assert (one.verdict, one.look, one.stopped) == (Verdict.UNDECIDED, 4, False)
    assert "have the same ratio" in one.reason


def test_a_stage_that_never_gave_a_number_ends_with_the_last_look() -> None:
    table = plan(12, of=12, a=1.5)
    table.tpm[1] = np.nan
    never = Table(table.stages, table.rounds, table.tpm, attempts_of(
        (stage, (round_, 1), stage == "a") for stage in table.stages for round_ in range(1, 13)
    ))  # fmt: skip
    one = judged(never, 12)["a"]
    assert (one.verdict, one.look, one.stopped) == (Verdict.UNDECIDED, 12, True)


def test_only_what_decides_when_to_stop_announces_a_further_look() -> None:
    found = compare_at_looks(plan(4, a=1.5, b=1.52), 20)
    assert all(one.stopped for one in found.against_first)
    _, before = found.against_before
    assert before.verdict is Verdict.UNDECIDED
    assert "next look" not in before.reason


def test_one_pair_alone_is_its_own_family() -> None:
    table = plan(4, a=1.5, b=1.2)
    asked = compare_pair(table, "a", "b", rounds_max=20)
    assert (asked.relation, asked.look) == ("asked", 4)
    between = ratio_between(table, "a", "b", 0.95, 20)
    assert between is not None
    assert (between.low, between.high) == (asked.low, asked.high)
    assert ratio_between(plan(3, a=1.5), "a", "base", 0.95, 20) is None


def test_rounds_that_follow_each_other_are_warned_of() -> None:
    rng = np.random.default_rng(3)
    drifting = np.cumsum(rng.standard_normal(20)) * 0.02
    assert "rounds are not independent" in str(dependence(drifting))
    assert dependence(NOISE[:12]) is None
    assert dependence(drifting[:7]) is None
    table = plan(20, a=1.0)
    table.tpm[1] = 1000 * np.exp(drifting)
    assert any("not independent" in text for text in judged(table)["a"].warnings)


@pytest.mark.parametrize("rounds", LOOKS)
def test_later_looks_and_fewer_comparisons_ask_for_less(rounds: int) -> None:
    looks = LOOKS[rounds]
    assert looks[-1] == rounds
    table = np.array(CRITICAL[rounds])
    assert table.shape == (OPEN_MAX, len(looks))
    assert (np.diff(table, axis=1) < 0).all()
    assert (np.diff(table, axis=0) > 0).all()
