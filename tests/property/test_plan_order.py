"""The order of stages is fair, whatever their number."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.plan.resolve.order import balanced_order

STAGES = st.integers(1, 12)


@given(STAGES, st.integers(1, 40))
def test_every_round_visits_every_stage_once(stages: int, rounds: int) -> None:
    order = balanced_order(stages, rounds)

    assert len(order) == rounds
    assert all(sorted(row) == list(range(stages)) for row in order)
    assert order[0][0] == 0


@given(STAGES, st.integers(1, 40))
def test_every_stage_stands_in_every_position_about_equally_often(stages: int, rounds: int) -> None:
    order = balanced_order(stages, rounds)
    halves = -(-rounds // stages)  # blocks of `stages` rounds, the last may be short

    for position in range(stages):
        counts = Counter(row[position] for row in order)
        spread = max(counts.values()) - min(counts.get(stage, 0) for stage in range(stages))
        assert spread <= 1, (position, counts, halves)


@given(st.integers(2, 12), st.integers(1, 3))
def test_every_stage_follows_every_other_equally_often(stages: int, times: int) -> None:
    whole = stages if stages % 2 == 0 else 2 * stages
    order = balanced_order(stages, whole * times)

    counts = Counter(pair for row in order for pair in pairwise(row))

    assert len(counts) == stages * (stages - 1)
    assert len(set(counts.values())) == 1
