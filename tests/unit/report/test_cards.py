"""What the box of a stage says beside its number, for who reads nothing below it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.plain import plain
from pgdyno.report.compose import compose
from pgdyno.report.document import Card
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


def test_one_that_begins_afresh_was_put_on_top_of_nothing(facts: Facts) -> None:
    *others, last = facts.stages
    afresh = replace(facts, stages=(*others, replace(last, afresh=True)))

    assert cards(afresh)["async-commit"].builds_on is None


def test_it_is_said_why_nothing_is_known_of_the_slowest_requests(facts: Facts) -> None:
    untold = replace(facts, stages=tuple(replace(one, tails=()) for one in facts.stages))
    why = "that takes 1,000 of a kind in each window at least, all of them answered"

    found = cards(untold)

    assert found["initdb"].tail is None, "it is compared with nothing"
    assert found["tuned"].tail is not None
    assert found["tuned"].tail.text == f"slowest requests not compared: {why}"
    assert f"What `tuned` does to the slowest requests is not known: {why}." in [
        sentence.replace(" and `async-commit` do ", " does ") for sentence in plain(untold.stages)
    ]
