"""Follow-up plans of a stage of an earlier run: all that it had, and what is tried on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.model.proposal import Prediction
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.settings import Rung
from pgdyno.plan import read_plan
from pgdyno.plan.follow_up import ROUNDS, TriedStage, follow_up
from pgdyno.plan.resolve.plan import resolve
from pgdyno.plan.schema.read import read_plan_text
from pgdyno.plan.schema.toml_text import toml_text
from tests.data.servers import HOST, installed

PLANS = Path(__file__).parents[3] / "plans"
TRY = TriedStage(
    "larger", "Tried.", {"wal_buffers": "64MB"}, expects=Prediction(1.1, 1.0, 1.3, "flush")
)


def resolved(name: str, *overrides: str, quick: bool = False) -> Plan:
    draft = read_plan(PLANS / f"{name}.toml", overrides, quick=quick)
    return resolve(draft, installed(18), HOST)


def again(document: dict[str, Any]) -> Plan:
    draft = read_plan_text(toml_text(document), "follow-up", PLANS)
    return resolve(draft, installed(18), HOST)


@pytest.mark.parametrize("name", ["demo", "tuning", "faces", "tpcc-six-stages"])
def test_the_stage_is_what_it_was_and_the_next_one_differs_in_what_is_tried(name: str) -> None:
    plan = resolved(name)
    for base in plan.stages:
        found = again(follow_up(plan, base, (TRY,), Rung.D6))
        first, tried = found.stages
        assert [(one.name, one.value) for one in first.settings] == [
            (one.name, one.value) for one in base.settings
        ]
        assert (first.workload, first.build, first.folder) == (
            base.workload, base.build, base.folder,
        )  # fmt: skip
        assert found.workload == plan.workload
        changed = {(one.name, one.value) for one in tried.settings}
        assert changed - {(one.name, one.value) for one in first.settings} <= {
            ("wal_buffers", "64MB")
        }
        assert ("wal_buffers", "64MB") in changed
        assert tried.workload == base.workload


def test_what_is_believed_is_in_the_plan_and_stays_in_its_record() -> None:
    plan = resolved("demo")
    found = again(follow_up(plan, plan.stages[0], (TRY,), Rung.D0))
    assert found.stages[1].expects == Prediction(1.1, 1.0, 1.3, "flush")
    assert from_json(Plan, to_json(found)) == found


def test_it_stops_when_it_is_decided_but_where_anchors_have_no_looks() -> None:
    plan = resolved("tuning")
    found = again(follow_up(plan, plan.stages[0], (TRY,), Rung.D0)).protocol
    assert (found.stop, found.lowest_rung) == ("decided", Rung.D0)
    plan = resolved("demo", quick=True)
    found = again(follow_up(plan, plan.stages[0], (TRY,), Rung.D0)).protocol
    assert (found.stop, found.rounds) == ("decided", ROUNDS)
    assert found.window_s == plan.protocol.window_s
    plan = resolved("demo", "protocol.stop=rounds", "protocol.checkpoints=anchors")
    found = again(follow_up(plan, plan.stages[0], (TRY,), Rung.D0)).protocol
    assert (found.stop, found.checkpoints) == ("rounds", "anchors")


def test_a_stage_that_a_lower_rung_allowed_stays_allowed() -> None:
    plan = resolved("demo")
    assert again(follow_up(plan, plan.stages[1], (TRY,), Rung.D0)).protocol.lowest_rung == Rung.D2


def test_a_copy_for_a_folder_is_refused() -> None:
    draft = read_plan(PLANS / "storage-comparison.toml", quick=True, folders=("/mnt/a", "/mnt/b"))
    plan = resolve(draft, installed(18), HOST)
    copy = next(one for one in plan.stages if one.name.startswith("other"))
    with pytest.raises(PlanError, match="repeated as"):
        follow_up(plan, copy, (TRY,), Rung.D6)


@pytest.mark.parametrize(
    ("expects", "fact"),
    [
        ({"ratio": 1.1, "low": 1.2, "high": 1.3}, "low <= ratio <= high"),
        ({"ratio": 0, "low": 0, "high": 1}, "more than 0"),
        ({"ratio": 1.1, "low": 1.0}, "high"),
        ({"ratio": 1.1, "low": 1.0, "high": 1.3, "p": 1}, "p"),
    ],
)
def test_a_belief_that_cannot_be_held_is_refused(expects: dict[str, Any], fact: str) -> None:
    plan = resolved("demo")
    document = follow_up(plan, plan.stages[0], (TRY,), Rung.D0)
    document["stage"][1]["expects"] = expects
    with pytest.raises(PlanError, match=fact):
        again(document)


@pytest.mark.parametrize(("stage", "key"), [("unlogged", "unlogged"), ("lying-disk", "lying_disk")])
def test_what_stands_beside_the_settings_stays_so(stage: str, key: str) -> None:
    """Else the next stage would be measured on logged tables, or on an honest disk."""
    plan = resolved("durability")
    base = plan.stage(stage)
    assert getattr(base, key)
    found = again(follow_up(plan, base, (TRY,), Rung.D6))
    assert [getattr(one, key) for one in found.stages] == [True, True]
