"""Moves: against which limits they are, and what is believed of them before they are tried."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.account_facts import RUNNING
from pgdyno.analysis.window_facts import StageWindows, WindowFacts
from pgdyno.catalog import known_settings, machine_knobs, moves
from pgdyno.diagnosis.moves import candidates, found_in_some
from pgdyno.diagnosis.rules import rules
from pgdyno.diagnosis.stages import diagnose_stages
from pgdyno.model.proposal import Proposed
from pgdyno.model.settings import Rung
from pgdyno.report.proposal import lines
from tests.data.windows import LOAD, NEEDED, PLANTED, a_window, an_account

WITHOUT = {
    "neighbours": "what others take of the host cannot be tuned away",
    "pages": "fillfactor and partitions shape the data",
    "connections": "another number of connections is another load",
}
"""Rules that no move is against, and why."""


def names(*windows: WindowFacts) -> list[str]:
    (diagnosed,) = diagnose_stages([StageWindows("s", windows)])
    return [one.move.name for one in candidates(diagnosed)]


def test_every_move_is_against_rules_there_are_and_every_rule_has_one_or_a_reason() -> None:
    against = {limit for move in moves().values() for limit in move.takes}
    assert against <= rules().keys()
    assert rules().keys() - against == WITHOUT.keys()


@pytest.mark.parametrize("name", moves())
def test_a_move_changes_what_the_catalogue_knows(name: str) -> None:
    move = moves()[name]
    server = bool(move.setting or move.host)
    assert server != bool(move.client), "one of both, so that a gain has one cause"
    assert {name.partition("@")[0] for name in move.host} <= machine_knobs().keys()
    assert move.setting.keys() <= known_settings().keys()
    assert move.why.endswith(".")


@pytest.mark.parametrize("limit", sorted(rules().keys() - WITHOUT.keys()))
def test_what_a_window_finds_has_its_moves_and_the_belief_is_within_the_bound(limit: str) -> None:
    (diagnosed,) = diagnose_stages([StageWindows("s", (PLANTED[limit],))])
    assert diagnosed.window is not None
    found = candidates(diagnosed)
    mine = [one for one in found if limit in one.move.takes]
    assert mine, diagnosed.sentence
    for one in found:
        gain = diagnosed.window.answer(one.against.name).gain
        assert gain is not None
        assert one.predicted.limit == one.against.name
        assert one.predicted.low == 1.0
        assert 1.0 < one.predicted.ratio <= gain.bound <= one.predicted.high
    ratios = [one.predicted.ratio for one in found]
    assert ratios == sorted(ratios, reverse=True)


def test_waiting_for_no_flush_is_believed_to_bring_more_than_flushing_otherwise() -> None:
    found = names(PLANTED["flush"])
    assert found[0] == "async-commit"
    assert moves()["async-commit"].rung == Rung.D2
    assert {"flush-by-write", "group-commit"} <= set(found)


def test_a_paced_load_and_one_that_is_not_known_have_no_moves() -> None:
    paced = a_window(load=replace(LOAD, arrivals="open"))
    assert names(paced) == []
    not_known, _ = NEEDED["flush"]
    assert names(not_known) == []


def test_what_was_found_counts_where_a_class_is_not_known_that_may_be_larger() -> None:
    account = an_account({RUNNING: 0.6, "flush": 0.4}, cpu_known=False)
    window = a_window(account=account, without=("server.cpu_s",))
    (diagnosed,) = diagnose_stages([StageWindows("s", (window,))])
    assert diagnosed.outcome == "unknown"
    assert diagnosed.window is not None
    assert diagnosed.window.answer("flush").verdict == "finding"
    assert names(window)[0] == "async-commit"


def test_what_one_round_did_not_find_is_not_believed() -> None:
    assert names(PLANTED["flush"], PLANTED["reads"]) == []
    assert names(PLANTED["flush"], PLANTED["flush"]) == names(PLANTED["flush"])


def test_what_one_round_did_not_find_is_named_where_moves_are_told() -> None:
    """`diagnose` shows the findings of one round, with what could be changed against each."""
    (apart,) = diagnose_stages([StageWindows("s", (PLANTED["flush"], PLANTED["reads"]))])
    (alike,) = diagnose_stages([StageWindows("s", (PLANTED["flush"], PLANTED["flush"]))])
    titles = found_in_some(apart)
    assert {rules()["flush"].title, rules()["reads"].title} <= {*titles}
    assert found_in_some(alike) == ()
    told = Proposed("run", "s", apart.sentence, None, Rung.D0, (), (), titles)
    *_, last = lines(told)
    assert last.startswith("Not all rounds found ")
    assert rules()["flush"].title in last
