"""What is asked of a proposal must be there: its rung, its stage."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.diagnosis_facts import Gain, RuleAnswer
from pgdyno.api import proposing
from pgdyno.api.planning import Plan, against_follow_up, load_plan
from pgdyno.catalog import moves
from pgdyno.diagnosis.moves import Candidate
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan as PlanRecord
from pgdyno.model.proposal import Allowed, NotTried, Prediction
from pgdyno.model.settings import Origin, OriginKind, Rung, Setting
from pgdyno.plan.resolve.builds import NO_BUILDS
from tests.data.miniature import write_miniature
from tests.data.servers import HOST, running


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ({"lowest_rung": "D9"}, "no rung is called 'D9'"),
        ({"stage": "none"}, "no stage is called 'none', there are initdb, tuned and async-commit"),
    ],
)
def test_what_is_not_there_is_refused(asked: dict[str, str], fact: str, tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite")
    with pytest.raises(PlanError, match=fact):
        pgdyno.propose(path, **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize("host", [False, True])
def test_what_a_running_server_cannot_have_is_not_left_to_an_option(
    host: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`which was not allowed` sends people to --host, which helps on no server that runs."""
    limit = RuleAnswer(1, "cpu", "CPUs", "finding", "CPUs are busy", gain=Gain(1.4, 1.5, 1.6))
    believed = Prediction(1.1, 1.0, 1.6, "cpu")
    names = ("huge-pages", "reserved-huge-pages", "no-autogroup")
    found = [Candidate(moves()[name], limit, believed) for name in names]
    monkeypatch.setattr(proposing, "candidates", lambda _: found)

    def known(earlier: PlanRecord, _: object) -> Plan:
        there = replace(earlier, target=replace(earlier.target, kind="running"))
        return Plan(there, running(15), HOST, (), NO_BUILDS, "plan.toml")

    monkeypatch.setattr(proposing, "follow_up", lambda *_: {})
    monkeypatch.setattr(proposing, "load_follow_up", known)
    proposed = pgdyno.propose(write_miniature(tmp_path / "run.sqlite"), host=host)

    machine = "it changes settings of the machine of a running server, which is left as it is"
    assert {one.move: one.why for one in proposed.facts.not_tried} == {
        "huge-pages": "it sets huge_pages, which cannot be set on a running server",
        "reserved-huge-pages": machine,
        "no-autogroup": machine,
    }


def test_of_a_plan_that_is_refused_all_stands_in_one_line() -> None:
    """A line of its own would look like a further move of the list."""
    one = PlanError("follow-up plan: stage a: x cannot be set")
    two = PlanError("follow-up plan: 2 errors\n  stage a: x cannot be set\n  stage a: y is wrong")
    assert against_follow_up(one) == "stage a: x cannot be set"
    assert against_follow_up(two) == "2 errors; stage a: x cannot be set; stage a: y is wrong"


def a_plan() -> Plan:
    return load_plan({
        "name": "p", "question": "Q?", "workload": {"kind": "tpcb"},
        "stage": [{"name": "a", "why": "W."}],
    })  # fmt: skip


def test_a_move_that_changes_what_is_pinned_is_not_proposed() -> None:
    plan = a_plan()
    limit = RuleAnswer(4, "flush", "flushes", "finding", "F.", gain=Gain(1.4, 1.5, 1.6))
    one = Candidate(moves()["group-commit"], limit, Prediction(1.1, 1.0, 1.6, "flush"))
    said = {
        pinned: proposing._tried(
            one, plan.record, plan.stages[0], plan, Allowed(Rung.D0, pinned=pinned)
        )
        for pinned in ((), ("wal_buffers",), ("commit_delay",), ("commit_siblings", "commit_delay"))
    }
    assert [type(found) for found in said.values()] == [tuple, tuple, NotTried, NotTried]
    refused = [found.why for found in said.values() if isinstance(found, NotTried)]
    assert refused == [
        "it changes commit_delay, which is pinned",
        "it changes commit_delay and commit_siblings, which are pinned",
    ]
    with pytest.raises(
        PlanError, match=r"wal_bufers is to be pinned, and PostgreSQL .* has no such setting"
    ):
        proposing.require_settings(["wal_bufers"], plan)


@pytest.mark.parametrize(
    ("move", "held", "proposed"),
    [
        ("smaller-memory", "128MB", None),
        ("smaller-memory", "100GB", "shared_buffers"),
        ("larger-buffers", "100GB", None),
        ("larger-buffers", "128MB", "shared_buffers"),
        ("wal-buffers", "-1", "wal_buffers"),
        ("wal-buffers", "128MB", None),
    ],
)
def test_a_move_to_more_takes_nothing_away_and_one_to_less_adds_nothing(
    move: str, held: str, proposed: str | None
) -> None:
    """*Less shared memory* would have set 2.4 GB where there were 128 MB."""
    plan = a_plan()
    name = "wal_buffers" if move == "wal-buffers" else "shared_buffers"
    held_there = (Setting(name, held, Origin(OriginKind.PLAN, "")),)
    base = replace(plan.stages[0], settings=held_there)
    changes = proposing._changes(moves()[move], base, plan)
    assert [one.name for one in changes] == ([proposed] if proposed else [])
