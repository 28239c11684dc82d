"""Losses made smaller: what is left still does the harm, and nothing can be left out of it."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.drills.shrink import gaps, smaller
from pgdyno.model.drill import Cut
from tests.data.drills import cut


@given(st.sets(st.integers(0, 79), min_size=1, max_size=3), st.integers(80, 200))
def test_what_does_the_harm_is_found_and_nothing_else(guilty: set[int], whole: int) -> None:
    kept: list[Sequence[int]] = [range(whole)]

    def harm(losses: Sequence[int]) -> Cut | None:
        if not guilty <= set(losses):
            return None
        kept.append(losses)
        return cut("tuned", "power", 1, "dead")

    found = list(smaller(list(range(whole)), harm, lambda: True))

    assert set(kept[-1]) == guilty
    assert len(found) == len(kept) - 1


def test_it_ends_where_no_more_tries_are_allowed() -> None:
    tried = 0

    def harm(losses: Sequence[int]) -> Cut | None:
        nonlocal tried
        tried += 1
        return cut("tuned", "power", 1, "dead") if 7 in losses else None

    list(smaller(list(range(1000)), harm, lambda: tried < 5))

    assert tried == 5


@given(st.sets(st.integers(0, 30)), st.integers(31, 40))
def test_gaps_are_all_that_is_not_kept(kept: set[int], whole: int) -> None:
    spared = [number for begin, end in gaps(sorted(kept), whole) for number in range(begin, end)]

    assert spared == [number for number in range(whole) if number not in kept]
