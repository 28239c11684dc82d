"""What checks say of several results is told once, with the results that it is about."""

from __future__ import annotations

from collections import Counter

import pytest

from pgdyno.imports.alike import alike, result_numbers
from pgdyno.imports.simultaneous import simultaneous
from pgdyno.report.imported import lines
from tests.data.imported import imported


@pytest.mark.parametrize(
    ("places", "said"),
    [
        ((2,), "result 3"),
        ((0, 1), "results 1 and 2"),
        ((0, 1, 2), "results 1 to 3"),
        ((0, 1, 2, 4, 6, 7), "results 1 to 3, 5, 7 and 8"),
    ],
)
def test_results_are_named_by_their_numbers(places: tuple[int, ...], said: str) -> None:
    assert result_numbers(places) == said


def test_a_fact_of_many_results_is_told_once() -> None:
    results = imported("field-six-stages.txt")
    share = next(one for one in alike(results, "fires") if one.trap == "T1")

    assert share.places == tuple(range(21))
    assert not share.same, "each of them has its own figures"
    assert share.sentence(21).endswith("(of result 1; the others have their own)")


def test_few_facts_of_their_own_figures_are_all_told() -> None:
    where = ("local-ssd", "essd-8", "essd-1", "essd-104-cores", "essd-32-cores")
    names = [f"field-storage-{one}.txt" for one in where]
    copied = [one for one in alike(imported(*names), "fires") if one.trap == "E10"]

    assert len(copied) == 2, "each says where its figure was copied from"
    assert all(one.same for one in copied)


def test_no_line_of_what_to_mind_is_printed_twice() -> None:
    for name in ("field-six-stages.txt", "field-storage-essd-8.txt", "go-tpc-1-json.txt"):
        results = imported(name)
        printed = list(lines(results, simultaneous(results)))
        minded = printed[printed.index("Mind:") :]
        assert max(Counter(minded).values()) == 1
        assert "1/min" not in "\n".join(printed)


def test_nothing_that_fires_or_lacks_something_is_left_out() -> None:
    results = imported("field-six-stages.txt", "pgbench-18-tpcb.txt")
    for outcome in ("fires", "unknown"):
        wanted = {
            (place, check.trap)
            for place, one in enumerate(results)
            for check in one.checks
            if check.outcome == outcome
        }
        assert wanted == {
            (place, one.trap) for one in alike(results, outcome) for place in one.places
        }
