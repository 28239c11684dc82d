"""What the cuts of a drill amount to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.drill import drill_facts
from pgdyno.analysis.run import plan_in
from pgdyno.model.drill import Control, Drilled, Made, State
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.plan import Plan
from pgdyno.store import RunFile
from tests.data.drills import DESIGN, INFO, drill
from tests.data.miniature import write_miniature


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    path: Path = tmp_path_factory.mktemp("run") / "run.sqlite"
    with RunFile.read(write_miniature(path)) as run:
        return plan_in(run.info())


def test_cuts_are_counted_by_what_came_back(plan: Plan) -> None:
    facts = drill_facts(drill(plan), INFO)

    rows = {(one.stage, one.disaster): one for one in facts.rows}
    first, second = (stage.name for stage in plan.stages[:2])
    assert rows[first, "power"].harmed.of == 0
    bad = rows[second, "power"]
    assert (bad.cuts, bad.dead, bad.damaged, bad.lost, bad.harmed.of) == (4, 1, 1, 1, 3)
    assert (bad.commits_lost, bad.lost_s) == (120, 0.03)
    assert bad.recovery_s == pytest.approx(0.8)
    assert bad.example is not None
    assert bad.example.startswith("The server did not come back")


def test_what_came_back_whole_is_said_with_what_it_cannot_rule_out(plan: Plan) -> None:
    whole, *_, bad = drill_facts(drill(plan), INFO).sentences

    assert "everything came back from 4 cuts; none of 20,000 acknowledged commits" in whole
    assert "At 95 % at most 60% of such cuts do harm." in whole
    assert (
        "1 server did not come back; 1 server came back damaged; 1 server lost acknowledged" in bad
    )
    assert "at most 120, the first of them from 0.030 s before" in bad


def test_harm_on_a_rung_that_loses_nothing_is_said_first_of_all(plan: Plan) -> None:
    first, second = (stage.name for stage in plan.stages[:2])
    states: dict[tuple[str, str], tuple[State, ...]] = {
        (first, "power"): ("whole", "damaged"), (second, "power"): ("whole", "whole"),
    }  # fmt: skip

    doubts = drill_facts(drill(plan, states), INFO).doubts

    assert any(f"Stage {first} is on rung D0, which loses nothing, and 1 cut of power" in one
               for one in doubts)  # fmt: skip


def test_a_control_that_found_nothing_and_cuts_without_chance_are_doubts(plan: Plan) -> None:
    made = drill(plan)
    first = plan.stages[0].name
    tame = tuple(
        replace(one, made=Made(0, 0, 0, 0, 0)) if one.stage == first else one for one in made.cuts
    )
    blind = Control(first, "A page of a table is damaged.", None)

    doubts = drill_facts(replace(made, cuts=tame, controls=(blind,)), INFO).doubts

    assert any("Control" in one and "proves nothing" in one for one in doubts)
    assert any(f"In no cut of power of stage {first} was anything left" in one for one in doubts)


def test_a_drill_that_was_broken_off_says_how_far_it_came(plan: Plan) -> None:
    made = drill(plan)
    second = plan.stages[1].name
    half = replace(made, cuts=tuple(one for one in made.cuts if one.stage != second))

    assert any(f"No cut of stage {second} was made" in one
               for one in drill_facts(half, INFO).doubts)  # fmt: skip
    with pytest.raises(PgdynoError, match="broken off before its first cut"):
        drill_facts(Drilled(made.asked), INFO)


def test_what_a_rung_brings_stands_beside_what_it_lost(plan: Plan) -> None:
    facts = drill_facts(drill(plan), INFO)

    first, second = facts.prices
    assert first.gain is None
    assert [one.words for one in first.took] == ["nothing in 4 cuts"] * 2
    assert first.worst == "whole"
    assert second.gain is not None
    assert second.gain.ratio == 1.37
    assert [one.words for one in second.took] == [
        "up to 0.04 s of commits in 2 of 4",
        "the database in 2 of 4, up to 0.03 s of commits in 1 of 4",
    ]
    assert [one.worst for one in second.took] == ["lost", "broken"]
    assert second.worst == "broken"


@pytest.mark.parametrize("wrong", [{"cuts": 0}, {"load_s": 0.5}, {"disasters": ()}])
def test_a_design_that_makes_no_cut_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=r"cuts of \d disasters into"):
        replace(DESIGN, **wrong)  # type: ignore[arg-type]  # whatever it is
