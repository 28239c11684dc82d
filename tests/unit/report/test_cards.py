"""What the box of a stage says beside its number, for who reads nothing below it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.plain import plain
from pgdyno.analysis.words import ESTIMATED, RATIO, verdict
from pgdyno.report.compose import compose
from pgdyno.report.document import Card, Table
from pgdyno.report.markdown import render
from pgdyno.report.sections import stages
from pgdyno.stats.interval import hodges_lehmann
from tests.unit.conftest import analysed


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return analysed(tmp_path_factory.mktemp("cards") / "run.sqlite", invalid=())


def cards(facts: Facts) -> dict[str, Card]:
    return {one.name: one for one in compose(facts).cards}


def test_a_box_says_on_top_of_what_a_stage_was_measured(facts: Facts) -> None:
    found = cards(facts)

    assert found["initdb"].builds_on is None
    assert found["tuned"].builds_on is None, "what it builds on is what it is compared with"
    text = found["async-commit"].builds_on
    before = facts.stages[2].to_previous
    assert text is not None
    assert before is not None
    assert before.ratio is not None
    assert text.startswith(f"on top of tuned: ×{before.ratio:.3f} of it (")
    assert text.endswith(f"): {verdict(before)}")


def test_one_with_its_data_elsewhere_takes_the_place_of_the_stage_before(facts: Facts) -> None:
    """Of two disks neither is on top of the other."""
    *others, last = facts.stages
    moved = replace(facts, stages=(*others, replace(last, folder="/mnt/b")))

    text = cards(moved)["async-commit"].builds_on
    assert text is not None
    assert text.startswith("beside tuned: ×")


def test_a_box_says_whether_others_are_compared_with_its_stage(facts: Facts) -> None:
    """With a load of its own a stage is compared with none, and none with it."""
    assert cards(facts)["initdb"].against == "the stage that others are compared with"
    apart = replace(facts, stages=tuple(replace(one, to_first=None) for one in facts.stages))
    for card in cards(apart).values():
        assert (card.verdict, card.against) == (None, "compared with no other stage")


def test_a_box_says_of_which_transactions_the_slowest_are(facts: Facts) -> None:
    tail = cards(facts)["async-commit"].tail
    assert tail is not None
    assert tail.text.startswith("slowest 1 in 1,000 New-Order transactions take ×"), tail.text


def test_no_ratio_is_called_the_middle_of_those_of_its_rounds(facts: Facts) -> None:
    """Who takes the middle of these three, which the page lists, finds ×1.669."""
    rounds = np.log([1.669, 2.002, 1.617])
    assert np.exp(hodges_lehmann(rounds)) == pytest.approx(1.733, abs=1e-3)

    page = render(facts)
    assert "middle of the ratios" not in page
    assert f"{RATIO} beside it" in page
    first, second, *others = facts.stages
    assert second.to_first is not None
    apart = replace(second, to_first=replace(second.to_first, ratio=1.733))
    told = cards(replace(facts, stages=(first, apart, *others)))[second.name].interval
    assert (told or "").endswith(f"; {ESTIMATED}, not by dividing the two numbers")


def test_the_verdict_beside_the_stage_before_stands_in_the_table(facts: Facts) -> None:
    table = next(one for one in stages.section(facts).blocks if isinstance(one, Table))
    at = [column.head for column in table.columns].index("to the stage before")
    notes = {row[0].text: row[at].note for row in table.rows}
    before = facts.stages[2].to_previous

    assert (notes["async-commit"] or "").endswith(f", {verdict(before)}")
    assert "," not in (notes["tuned"] or ""), "it is the verdict against the first"


def test_few_comparisons_of_one_warning_are_named_and_many_counted() -> None:
    about = stages._about

    assert about("few", {"a": ["b", "c"]}) == "`b` against `a` and `c` against `a`: few"
    assert about("few", {"a": ["b", "c"], "b": ["c", "d"]}) == "few (4 comparisons)"


def test_one_that_begins_afresh_was_put_on_top_of_nothing(facts: Facts) -> None:
    *others, last = facts.stages
    afresh = replace(facts, stages=(*others, replace(last, afresh=True)))

    assert cards(afresh)["async-commit"].builds_on is None


def test_it_is_said_why_nothing_is_known_of_the_slowest_requests(facts: Facts) -> None:
    untold = replace(facts, stages=tuple(replace(one, tails=()) for one in facts.stages))
    why = (
        "that takes a round in which both stages have at least 1,000 requests of one kind, all"
        " answered"
    )

    found = cards(untold)

    assert found["initdb"].tail is None, "it is compared with nothing"
    assert found["tuned"].tail is not None
    assert found["tuned"].tail.text == f"slowest requests not compared: {why}"
    assert f"What `tuned` does to the slowest requests is not known: {why}." in [
        sentence.replace(" and `async-commit` do ", " does ") for sentence in plain(untold.stages)
    ]
