"""Probes are toggled in a fair order, and what they show is what was there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.model.proof import Block, Design, Dose, Effect, Sitting
from pgdyno.stats.switchback import combinations_of, effect, elasticity, prices, total, turns

NAMES = ["nothing", "cpu", "flush"]
DESIGN = Design(pairs=6, sittings=2)


def sitting(with_: list[float], without: list[float], factor: float | None = None) -> Sitting:
    """Pairs of blocks that ended so many transactions in 2 s."""
    blocks = []
    for pair, ended in enumerate(zip(with_, without, strict=True)):
        for on, count in zip((True, False), ended, strict=True):
            dose = None if factor is None else Dose(10, 1e9, 1e9 * (factor - 1) * on)
            blocks.append(Block("cpu", ("cpu",) if on else (), pair, 1, 3, count, dose))
    return Sitting(1, "", tuple(blocks), "complete")


@given(st.integers(0, 1000), st.integers(1, 20))
def test_a_sitting_has_every_pair_of_every_probe_side_by_side(seed: int, number: int) -> None:
    order = turns(NAMES, replace(DESIGN, seed=seed), number)

    assert len(order) == 2 * len(NAMES) * DESIGN.pairs
    for first, second in zip(order[::2], order[1::2], strict=True):
        assert (first.probe, first.pair) == (second.probe, second.pair)
        assert {first.on, second.on} == {(), (first.probe,)}
    for begin in range(0, len(order), 2 * len(NAMES)):
        assert {turn.probe for turn in order[begin : begin + 2 * len(NAMES)]} == set(NAMES)
    assert order == turns(NAMES, replace(DESIGN, seed=seed), number)


def test_both_orders_come_and_sittings_differ() -> None:
    order = turns(NAMES, replace(DESIGN, pairs=50), 1)
    assert {bool(turn.on) for turn in order[::2]} == {True, False}
    assert order != turns(NAMES, replace(DESIGN, pairs=50), 2)


def test_a_load_that_becomes_slower_all_the_time_does_not_count_as_an_effect() -> None:
    per_block = [1000.0 * 0.99**n for n in range(80)]
    found = []
    for number in range(1, 60):
        order = turns(["cpu"], Design(pairs=40, sittings=1), number)
        blocks = tuple(
            Block("cpu", turn.on, turn.pair, 0, 1, ended)
            for turn, ended in zip(order, per_block, strict=True)
        )
        one = effect([Sitting(1, "", blocks, "complete")], "cpu")
        assert one is not None
        found.append(one.low <= 1 <= one.high)
    assert sum(found) >= 0.9 * len(found)


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    random, truth, held = np.random.default_rng(1), 0.9, 0
    for _ in range(400):
        noise = random.normal(0, 0.05, (2, 12))
        with_ = [1000 * truth * exp(one) for one in noise[0]]
        found = effect([sitting(with_, [1000 * exp(one) for one in noise[1]])], "cpu")
        assert found is not None
        held += found.low <= truth <= found.high
    assert held >= 0.92 * 400


def test_what_takes_a_share_of_the_time_has_it_as_its_elasticity() -> None:
    """One session, a transaction is 6 parts of CPU time and 4 of flushes."""
    tiny = 1.0001
    shares = {"cpu": 0.6, "flush": 0.4}
    found = []
    for share in shares.values():
        slower = 1 / (share * tiny + 1 - share)
        one = elasticity(Effect(2, slower, slower, slower, tiny, None))
        assert one is not None
        assert one.value == pytest.approx(share, rel=1e-3)
        found.append(one)
    assert total(found).value == pytest.approx(1, rel=1e-3)


def test_errors_of_a_sum_add_as_squares() -> None:
    step = 1.2
    wide = elasticity(Effect(2, step**-0.5, step**-0.8, step**-0.2, step, None))
    assert wide is not None
    assert (wide.value, wide.low, wide.high) == pytest.approx((0.5, 0.2, 0.8))
    both = total([wide, wide])
    assert (both.value, both.low) == pytest.approx((1.0, 1 - 0.3 * 2**0.5))


def test_the_factor_is_measured_and_a_resource_that_is_not_used_has_none() -> None:
    used = effect([sitting([100, 100], [110, 110], factor=1.2)], "cpu")
    assert used is not None
    assert used.factor == pytest.approx(1.2)
    assert used.units_per_s == pytest.approx(5)
    blocks = sitting([100, 100], [100, 100], factor=1.2).blocks
    idle = tuple(replace(block, dose=Dose(0, 0, 0)) for block in blocks)
    unused = effect([Sitting(1, "", idle, "complete")], "cpu")
    assert unused is not None
    assert unused.factor is None
    assert elasticity(unused) is None


def test_pairs_in_which_nothing_ended_tell_nothing() -> None:
    assert effect([sitting([100, 0, 100], [100, 100, 100])], "cpu") == effect(
        [sitting([100, 100], [100, 100])], "cpu"
    )
    assert effect([sitting([100, 0], [100, 100])], "cpu") is None
    assert effect([], "cpu") is None


def test_sittings_add_up() -> None:
    one = sitting([90, 91, 92], [100, 100, 100])
    found = effect([one, replace(one, number=2)], "cpu")
    assert found is not None
    assert found.pairs == 6
    assert all(a.pair <= b.pair for a, b in pairwise(one.blocks))


FREE = ["flush", "image", "wait"]


def combined(rate_of: Callable[[frozenset[str]], float], repetitions: int = 4) -> Sitting:
    """Blocks of all combinations, each repetition a little faster than the one before."""
    blocks = tuple(
        Block("", chosen, n, 0, 1, 1000 * rate_of(frozenset(chosen)) * 1.01**n)
        for n in range(repetitions)
        for chosen in combinations_of(FREE)
    )
    return Sitting(1, "", blocks, "complete")


def test_every_round_has_all_combinations_once() -> None:
    design = replace(DESIGN, prices=True)
    order = turns(["nothing", *FREE], design, 1, FREE)
    cells = [turn for turn in order if not turn.probe]
    assert len(cells) == design.pairs * 8
    for n in range(design.pairs):
        mine = [turn.on for turn in cells if turn.pair == n]
        assert sorted(mine) == sorted(combinations_of(FREE))
    assert len({tuple(turn.on for turn in cells if turn.pair == n) for n in range(6)}) > 1
    assert not [turn for turn in turns(FREE, DESIGN, 1) if not turn.probe]


def test_what_costs_the_same_in_any_company_has_one_price() -> None:
    worth = {"flush": 1.2, "image": 1.05, "wait": 1.0}

    def rate(free: frozenset[str]) -> float:
        return float(np.prod([worth[one] for one in free]))

    found = prices([combined(rate)], FREE)

    assert found is not None
    assert found.repetitions == 4
    assert [one.probe for one in found.each] == ["flush", "image", "wait"]
    for one in found.each:
        for ratio in (one.first, one.last, one.share):
            assert ratio.value == pytest.approx(worth[one.probe])
    assert found.together.value == pytest.approx(1.2 * 1.05)
    assert [one.exposes for one in found.each] == ["image", "flush", "flush"]


def test_what_hides_behind_another_is_worth_more_last_than_first() -> None:
    """Each of the two takes the time that the other leaves, until both are gone."""

    def rate(free: frozenset[str]) -> float:
        return 1 / max(0.5, *(part for name, part in (("flush", 1.0), ("image", 0.9))
                              if name not in free), 0.5)  # fmt: skip

    found = prices([combined(rate)], FREE)

    assert found is not None
    image = next(one for one in found.each if one.probe == "image")
    assert image.first.value == pytest.approx(1.0)
    assert image.last.value == pytest.approx(1.8)
    flush = next(one for one in found.each if one.probe == "flush")
    assert (flush.exposes, flush.exposed) == ("image", flush.exposed)
    assert flush.exposed is not None
    assert flush.exposed.value == pytest.approx(1.8)
    assert image.exposes == "flush"


@given(st.lists(st.floats(0.5, 2.0), min_size=8, max_size=8))
def test_shares_multiply_to_what_all_of_them_bring(rates: list[float]) -> None:
    by_cell = dict(zip(map(frozenset, combinations_of(FREE)), rates, strict=True))
    found = prices([combined(by_cell.__getitem__)], FREE)
    assert found is not None
    product = float(np.prod([one.share.value for one in found.each]))
    assert product == pytest.approx(found.together.value)


def test_a_repetition_that_is_not_whole_is_left_out() -> None:
    whole = combined(lambda _: 1.0)
    broken = replace(whole, blocks=(replace(whole.blocks[0], ended=0), *whole.blocks[1:]))
    found = prices([broken], FREE)
    assert found is not None
    assert found.repetitions == 3
    assert prices([combined(lambda _: 1.0, repetitions=1)], FREE) is None
    assert prices([whole], []) is None
