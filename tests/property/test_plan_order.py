"""The order of stages is fair, whatever their number."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise, permutations

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


@given(st.integers(2, 12), st.integers(0, 40), st.data())
def test_stages_that_drop_out_leave_the_others_balanced(
    stages: int, ended: int, data: st.DataObject
) -> None:
    # Of a plan that stops when it is decided: rows come with their mirror images, and who stands
    # before whom does not depend on who else is there.
    whole = stages if stages % 2 == 0 else 2 * stages
    left = data.draw(st.lists(st.integers(0, stages - 1), min_size=2, unique=True))
    rows = balanced_order(stages, ended + whole)[ended:]
    rest = [[stage for stage in row if stage in left] for row in rows]

    before = Counter(pair for row in rest for pair in combinations(row, 2))
    assert {before[one, other] for one, other in permutations(left, 2)} == {whole // 2}
    means = {sum(row.index(stage) for row in rest) / whole for stage in left}
    assert means == {(len(left) - 1) / 2}
