"""Verdicts of plans whose answer is plain, and of those that must not get one."""

from __future__ import annotations

from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest

from pgdyno.model.errors import PgdynoError
from pgdyno.stats.compare import PlanComparison, compare_plan, holm
from pgdyno.stats.interval import worst_rank_p
from pgdyno.stats.table import Table, attempts_of, table_of
from pgdyno.stats.verdict import Verdict

NAN = float("nan")


def plan(**stages: list[float]) -> Table:
    """Rows of tpm by stage, one value a round."""
    cells = {(name, r): tpm for name, row in stages.items() for r, tpm in enumerate(row, start=1)}
    return table_of(cells, list(stages))


def only(compared: PlanComparison) -> Verdict:
    (one,) = compared.against_first
    return one.verdict


BASE = [1000.0, 1010.0, 1004.0]


def test_half_as_much_again_is_better() -> None:
    (one,) = compare_plan(plan(a=BASE, b=[1500.0, 1530.0, 1490.0])).against_first
    assert one.verdict is Verdict.BETTER
    assert 1.4 < one.low < one.ratio < one.high < 1.6
    assert (one.stage, one.base, one.relation, one.n) == ("b", "a", "first", 3)
    assert one.rounds_needed is None
    assert one.warnings == ()


def test_half_is_worse() -> None:
    assert only(compare_plan(plan(a=BASE, b=[500.0, 507.0, 504.0]))) is Verdict.WORSE


def test_the_same_within_the_margin_is_equivalent() -> None:
    assert only(compare_plan(plan(a=BASE, b=[1001.0, 1008.0, 1005.0]))) is Verdict.EQUIVALENT


def test_a_real_but_small_difference_says_that_it_is_small() -> None:
    (one,) = compare_plan(plan(a=BASE, b=[1010.0, 1020.3, 1014.2])).against_first
    assert one.verdict is Verdict.BETTER
    assert "smaller than the margin of 3%" in one.warnings[-1]


def test_noise_is_undecided_and_says_how_many_rounds_would_decide() -> None:
    (one,) = compare_plan(plan(a=BASE, b=[1100.0, 950.0, 1150.0])).against_first
    assert one.verdict is Verdict.UNDECIDED
    assert one.low < 1 < one.high
    assert one.rounds_needed is not None
    assert one.rounds_needed > 3
    assert f"about {one.rounds_needed} rounds in all" in one.reason


def test_each_stage_is_held_against_the_first_and_the_one_before() -> None:
    compared = compare_plan(plan(a=BASE, b=[1500.0, 1530.0, 1490.0], c=[1510.0, 1520.0, 1500.0]))
    assert [(one.stage, one.base) for one in compared.against_first] == [("b", "a"), ("c", "a")]
    assert [(one.stage, one.base) for one in compared.against_before] == [("b", "a"), ("c", "b")]


def test_an_interval_above_1_among_many_is_not_yet_a_verdict() -> None:
    table = plan(
        a=BASE,
        b=[1050.0, 1090.0, 1065.0],
        c=[1100.0, 950.0, 1150.0],
        d=[1080.0, 960.0, 1110.0],
        e=[900.0, 1010.0, 1100.0],
    )
    one = compare_plan(table).against_first[0]
    assert one.low > 1
    assert one.p <= 0.05 < one.p_adjusted
    assert one.verdict is Verdict.UNDECIDED
    assert "among 4 comparisons" in one.reason
    # Alone, it is one.
    assert only(compare_plan(table.only(["a", "b"]))) is Verdict.BETTER


@pytest.mark.parametrize("gone", [None, NAN])
def test_a_missing_trial_drops_its_pair_and_is_told(gone: float | None) -> None:
    cells: dict[tuple[str, int], float | None] = {("a", r): tpm for r, tpm in enumerate(BASE, 1)}
    cells |= {("b", 1): 1500.0, ("b", 2): gone, ("b", 3): 1490.0}
    (one,) = compare_plan(table_of(cells, ["a", "b"])).against_first
    assert one.n == 2
    assert "round 2 left out: no valid trial of b" in one.warnings
    assert any("2 rounds say little" in warning for warning in one.warnings)


def test_rounds_left_out_are_told_together_and_those_not_reached_not_at_all() -> None:
    cells: dict[tuple[str, int], float | None] = {("a", r): tpm for r, tpm in enumerate(BASE, 1)}
    cells |= {("b", 1): 1500.0, ("b", 2): None, ("b", 3): None}
    cells |= {(name, number): None for name in "ab" for number in (4, 5)}
    (one,) = compare_plan(table_of(cells, ["a", "b"])).against_first
    left_out = [warning for warning in one.warnings if "left out" in warning]
    assert left_out == ["rounds 2 and 3 left out: no valid trial of b"]


@pytest.mark.parametrize("rounds", [0, 1])
def test_fewer_than_two_pairs_are_never_a_claim(rounds: int) -> None:
    cells: dict[tuple[str, int], float | None] = {("a", 1): 1000.0, ("a", 2): 1010.0}
    cells |= {("b", r): 9000.0 if r <= rounds else None for r in (1, 2)}
    (one,) = compare_plan(table_of(cells, ["a", "b"])).against_first
    assert (one.low, one.high) == (0.0, inf)
    assert one.verdict is Verdict.UNDECIDED
    assert isnan(one.ratio) if rounds == 0 else one.ratio == pytest.approx(9.0)
    assert one.p == 1.0
    both = "1 round has both stages" if rounds == 1 else "0 rounds have both stages"
    assert any(both in warning for warning in one.warnings)


def test_a_stage_that_completed_nothing_gets_no_verdict() -> None:
    row = [1500.0, 0.0, 1490.0, 1512.0]
    (one,) = compare_plan(plan(a=[*BASE, 1002.0], b=row)).against_first
    assert one.verdict is Verdict.UNDECIDED
    assert one.reason == "b completed nothing in round 2"
    assert one.n == 3


def test_ratios_that_agree_exactly_were_not_measured() -> None:
    (one,) = compare_plan(plan(a=BASE, b=[2 * tpm for tpm in BASE])).against_first
    assert one.verdict is Verdict.UNDECIDED
    assert "which measured data never show" in one.reason
    assert (one.low, one.high) == (0.0, inf)


def test_one_stage_compares_with_nothing() -> None:
    compared = compare_plan(plan(a=BASE))
    assert compared.against_first == compared.against_before == ()


def test_ten_rounds_use_ranks_and_say_so() -> None:
    rng = np.random.default_rng(3)
    a = list(1000 * np.exp(0.02 * rng.standard_normal(10)))
    b = list(1300 * np.exp(0.02 * rng.standard_normal(10)))
    (one,) = compare_plan(plan(a=a, b=b)).against_first
    assert "signed-rank" in one.method
    assert one.confidence >= 0.95
    assert one.verdict is Verdict.BETTER


def test_pooling_narrows_and_says_so() -> None:
    table = plan(a=BASE, b=[1500.0, 1530.0, 1490.0], c=[1510.0, 1517.0, 1512.0])
    own = compare_plan(table).against_first[0]
    pooled = compare_plan(table, spread="pooled").against_first[0]
    assert "pooled over 3 stages" in pooled.method
    assert pooled.high - pooled.low < own.high - own.low


def test_a_table_with_gaps_is_not_pooled_and_says_so() -> None:
    table = plan(a=BASE, b=[1500.0, 1530.0, 1490.0], c=[NAN, 1520.0, 1500.0])
    compared = compare_plan(table, spread="pooled")
    assert "pooled" not in compared.against_first[0].method
    assert "the table has gaps" in compared.warnings[0]


def test_holm_adjusts_step_by_step() -> None:
    # 4 * 0.01, 3 * 0.02 = 0.06, 2 * 0.03 = 0.06, then 0.04 must not fall below 0.06.
    adjusted = holm(np.array([0.03, 0.01, 0.04, 0.02]))
    assert adjusted == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert holm(np.array([0.7, 0.6])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("arguments", "fact"),
    [
        ({"margin": 0.0}, r"margin is 0\.0"),
        ({"margin": 3.0}, r"margin is 3\.0"),
        ({"confidence": 95.0}, r"confidence is 95\.0"),
        ({"confidence": 0.3}, r"confidence is 0\.3"),
    ],
)
def test_nonsense_is_refused(arguments: dict[str, float], fact: str) -> None:
    with pytest.raises(PgdynoError, match=fact):
        compare_plan(plan(a=BASE, b=BASE), **arguments)  # type: ignore[arg-type]


def test_the_margin_is_symmetric_in_the_logarithm() -> None:
    # Interval about 0.60 to 1.40: within 1/1.7 to 1.7, not within 1/1.5 to 1.5 (but 0.5 to 1.5).
    table = plan(a=[1000.0, 1000.0, 1000.0], b=[800.0, 920.0, 1085.0])
    (one,) = compare_plan(table).against_first
    assert 1 / 1.7 < one.low < 1 / 1.5
    assert one.high < 1.5
    assert only(compare_plan(table, margin=0.7)) is Verdict.EQUIVALENT
    assert only(compare_plan(table, margin=0.5)) is Verdict.UNDECIDED


def test_stages_of_different_loads_are_not_compared() -> None:
    table = plan(read=BASE, far=[990.0, 1010.2, 1004.1], write=[10.0, 11.0, 12.0], copy=BASE)
    loads = {"read": "r", "far": "r", "write": "w", "copy": "r"}

    compared = compare_plan(table, loads=loads)

    assert [(one.stage, one.base) for one in compared.against_first] == [
        ("far", "read"), ("copy", "read")
    ]  # fmt: skip
    assert [(one.stage, one.base) for one in compared.against_before] == [("far", "read")]


def failing(
    base: list[float], stage: list[float | None], of_base: tuple[int, ...] = ()
) -> PlanComparison:
    """Two stages; a None of `stage`, and the rounds of `of_base`, are trials that failed."""
    cells: dict[tuple[str, int], float | None] = {}
    for r, (one, other) in enumerate(zip(base, stage, strict=True), start=1):
        cells |= {("a", r): None if r in of_base else one, ("b", r): other}
    attempts = attempts_of((name, (r, 1), tpm is None) for (name, r), tpm in cells.items())
    return compare_plan(replace(table_of(cells, ["a", "b"]), attempts=attempts))


def test_two_failures_in_five_rounds_outweigh_the_three_that_lived() -> None:
    five = [1000.0, 1010.0, 1004.0, 996.0, 1003.0]
    lived: list[float | None] = [1500.0, None, 1530.0, None, 1490.0]
    unknown = plan(a=five, b=[NAN if tpm is None else tpm for tpm in lived])
    assert only(compare_plan(unknown)) is Verdict.BETTER  # three rounds that were never run

    (one,) = failing(five, lived).against_first

    assert one.verdict is Verdict.UNDECIDED
    assert one.low > 1
    assert one.p_adjusted > 0.05
    assert one.rounds_needed is None
    assert "2 of 5 trials of b failed" in one.reason
    assert one.failures == "2 of 5 trials of b failed"
    assert any("rounds in which both lived" in warning for warning in one.warnings)


def test_a_stage_that_always_fails_is_nothing_but_undecided() -> None:
    (one,) = failing([1000.0] * 5, [None] * 5).against_first
    assert one.verdict is Verdict.UNDECIDED
    assert "5 of 5 trials of b failed" in one.reason


def test_one_failure_in_many_rounds_is_outweighed_and_told() -> None:
    rng = np.random.default_rng(5)
    base = list(1000 * np.exp(0.02 * rng.standard_normal(20)))
    stage: list[float | None] = [2 * tpm for tpm in base]
    noisy = [tpm * (1 + 0.01 * k) if tpm else None for k, tpm in enumerate(stage)]
    (one,) = failing(base, [*noisy[:7], None, *noisy[8:]]).against_first
    assert one.verdict is Verdict.BETTER
    assert "1 of 20 trials of b failed, counted as the worst values" in one.reason


def test_failures_of_the_base_are_none_of_the_stages_and_do_not_flatter_it() -> None:
    five = [1000.0, 1010.0, 1004.0, 996.0, 1003.0]
    (better,) = failing(five, [1500.0, 1530.0, 1490.0, 1510.0, 1500.0], (2,)).against_first
    assert better.verdict is Verdict.BETTER
    assert "1 of 5 trials of a failed" in better.reason
    (worse,) = failing(five, [500.0, 510.0, 490.0, 503.0, 501.0], (2, 4)).against_first
    assert worse.verdict is Verdict.UNDECIDED
    assert worse.high < 1


def test_a_round_that_failed_for_both_is_held_against_neither() -> None:
    five = [1000.0, 1010.0, 1004.0, 996.0, 1003.0]
    (one,) = failing(five, [1500.0, None, 1490.0, 1510.0, 1500.0], (2,)).against_first
    assert one.verdict is Verdict.BETTER


def test_a_failing_stage_is_not_equivalent() -> None:
    base = [1000.0, 1010.0, 1004.0, 1001.0]
    stage: list[float | None] = [1001.0, 1008.0, 1005.0, None]
    (one,) = failing(base, stage).against_first
    assert one.verdict is Verdict.UNDECIDED
    assert "leave it open" in one.reason


def test_a_failure_counts_also_where_the_round_was_measured_again() -> None:
    five = [1000.0, 1010.0, 1004.0, 996.0, 1003.0]
    table = plan(a=five, b=[1500.0, 1530.0, 1490.0, 1510.0, 1500.0])
    tries = [(name, (r, 1), name == "b" and r == 2) for name in "ab" for r in range(1, 6)]
    tries += [("a", (2, 2), False), ("b", (2, 2), False)]
    (one,) = compare_plan(replace(table, attempts=attempts_of(tries))).against_first
    assert one.n == 5
    assert one.verdict is Verdict.UNDECIDED
    assert "1 of 6 trials of b failed" in one.reason


@pytest.mark.parametrize(
    ("pairs", "lost", "p"),
    [
        ([], 0, 1.0),
        ([], 5, 1.0),
        ([0.1, 0.2, 0.3, 0.4, 0.5], 0, 2 / 32),
        ([0.4] * 10, 1, 2 * 55 / 2048),  # sets of ranks 1 to 11 that sum to at most 11
        ([-0.1, 0.2, 0.3], 0, 2 * 2 / 8),
    ],
)
def test_lost_trials_have_the_highest_ranks(pairs: list[float], lost: int, p: float) -> None:
    assert worst_rank_p(np.array(pairs), lost) == pytest.approx(p)
