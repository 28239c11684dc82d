"""What the cuts of a drill amount to."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.drill import drill_facts
from pgdyno.analysis.drill_facts import MeasuredLoss, Took
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.losses import Losses, with_losses
from pgdyno.analysis.plain import plain
from pgdyno.drills.disasters import named
from pgdyno.model.drill import Control, Cut, Drilled, Made, Outage, State
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.plan import Plan
from pgdyno.report.drill import render_md
from pgdyno.stats.shares import share
from pgdyno.store import RunFile
from tests.data.drills import DESIGN, INFO, cut, drill
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

    assert "each commit that had been acknowledged was there (20,000 looks, one for each" in whole
    assert "At 95% at most 60% of such cuts do harm." in whole
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

    assert drill_facts(half, INFO).doubts[-1] == (
        f"The drill made 8 of 16 cuts: it was broken off. There is none of stage {second}."
        " `pgdyno resume`, given the run file, makes the others."
    )
    late = replace(made, asked=replace(made.asked, design=replace(DESIGN, minutes=5)),
                   cuts=made.cuts[:-1], out_of_time=True)  # fmt: skip
    assert drill_facts(late, INFO).doubts[-1] == (
        "The drill made 15 of 16 cuts: the 5 min that it had were over. `pgdyno resume`, given the"
        " run file, makes the others."
    )
    begun = replace(made, cuts=made.cuts[:1])
    assert drill_facts(begun, INFO).doubts[-1].startswith("The drill made 1 of 16 cuts: it was")
    with pytest.raises(PgdynoError, match="broken off before its first cut"):
        drill_facts(Drilled(made.asked), INFO)


def test_what_a_rung_brings_stands_beside_what_it_lost(plan: Plan) -> None:
    facts = drill_facts(drill(plan), INFO)

    first, second = facts.prices
    assert first.gain is None
    assert [one.words for one in first.took if one] == ["nothing in 4 cuts"] * 2
    assert first.worst == "whole"
    assert second.gain is not None
    assert second.gain.ratio == 1.37
    assert [one.words for one in second.took if one] == [
        "up to 40.0 ms of commits in 2 of 4",
        "the database in 2 of 4, up to 30.0 ms of commits in 1 of 4",
    ]
    assert [one.worst for one in second.took if one] == ["lost", "broken"]
    assert second.worst == "broken"


def test_the_answer_has_a_sentence_for_each_stage(plan: Plan) -> None:
    first, second = (stage.name for stage in plan.stages[:2])
    whole, lost = drill_facts(drill(plan), INFO).answers
    assert whole == (
        f"Stage {first} (D0): crash and power took nothing in 8 cuts, so that at 95% at most 37% of"
        " such do harm."
    )
    assert lost.startswith(f"Stage {second} (")
    assert "crash took up to 40.0 ms of commits in 2 of 4; power took the database in 2" in lost


def test_tables_that_are_emptied_are_more_than_the_commits_of_the_load(plan: Plan) -> None:
    first = plan.stages[0].name
    gone = replace(cut(first, "crash", 1, "lost", lost=40), emptied=3)
    made = drill(plan)
    price = drill_facts(replace(made, cuts=(gone,)), INFO).prices[0]
    assert price.took[0] is not None
    assert price.took[0].words == "all rows of its tables in 1 of 1"
    assert price.worst == "broken"
    (sentence,) = drill_facts(replace(made, cuts=(gone,)), INFO).sentences
    assert "1 server lost all rows of its tables, those that were loaded as well" in sentence


def test_disasters_strike_in_the_order_in_which_they_were_named() -> None:
    assert [one.name for one in named(("power-4k", "crash", "power-4k"))] == ["power-4k", "crash"]


def test_what_struck_nothing_is_said(plan: Plan) -> None:
    made = drill(plan)
    crashes = replace(made, cuts=tuple(one for one in made.cuts if one.disaster == "crash"))
    assert " There is none of power." in drill_facts(crashes, INFO).doubts[-1]


def test_each_stage_is_told_with_what_it_gives_up(plan: Plan) -> None:
    told = dict(drill_facts(drill(plan), INFO).gives_up)
    assert list(told) == [stage.name for stage in plan.stages[:2]]
    assert all(told.values())


def test_what_a_disk_takes_that_lies_is_not_the_stages_worst(plan: Plan) -> None:
    """Else a manager reads that full durability lost the database."""
    made = drill(plan)
    first = plan.stages[0].name
    lying = cut(first, "power-lying", 1, "dead")
    disasters = (*made.asked.disasters, *named(("power-lying",)))
    asked = replace(made.asked, disasters=disasters)

    both = drill_facts(replace(made, asked=asked, cuts=(*made.cuts, lying)), INFO).prices[0]
    alone = drill_facts(replace(made, asked=asked, cuts=(lying,)), INFO).prices[0]

    assert [one.worst for one in both.took if one] == ["whole", "whole", "broken"]
    assert both.worst == "whole"
    assert alone.worst == "broken"


def struck(plan: Plan, *cuts: Cut) -> Drilled:
    made = drill(plan)
    disasters = (*made.asked.disasters, *named(("wal-full",)))
    return replace(made, asked=replace(made.asked, disasters=disasters), cuts=(*made.cuts, *cuts))


def test_a_server_that_stays_down_is_no_loss_and_is_said(plan: Plan) -> None:
    first = plan.stages[0].name
    base = replace(cut(first, "wal-full", 1, "whole"), met=7)
    down = replace(base, outage=Outage(4.5, needs_somebody=True))
    up = replace(base, number=2, outage=Outage(0.25, needs_somebody=False))

    facts = drill_facts(struck(plan, down, up), INFO)

    (row,) = [one for one in facts.rows if one.disaster == "wal-full"]
    assert (row.harmed.of, row.stayed_down, row.outage_s) == (0, 1, 4.5)
    (sentence,) = [one for one in facts.sentences if "wal-full" in one]
    assert sentence.endswith(
        " In 1 of 2 cuts the server stayed down until somebody started it; the load was without a"
        " commit for 4.50 s at most, until its end."
    )
    price = facts.prices[0].took[-1]
    assert price is not None
    assert (price.words, price.worst) == ("the service in 1 of 2, until somebody came", "down")
    assert not any("wal-full" in one for one in facts.doubts)

    hung = replace(down, outage=Outage(4.5, True, "hangs", 120.0))
    waits = replace(down, number=3, outage=Outage(9.0, True, "waits"))
    facts = drill_facts(struck(plan, hung, up, waits), INFO)
    (row,) = [one for one in facts.rows if one.disaster == "wal-full"]
    assert (row.harmed.of, row.stayed_down, row.hung, row.waiting) == (0, 2, 1, 1)
    (sentence,) = [one for one in facts.sentences if "wal-full" in one]
    assert "everything came back from 3 cuts" in sentence, "it is no harm"
    assert sentence.endswith(
        " In 1 of 3 cuts the server had neither come back nor ended 120 s after the load: somebody"
        " has to end its postmaster before it can be started; in 1 of 3 cuts commits waited for a"
        " standby that is gone; the load was without a commit for 9.00 s at most, until its end."
    )
    slow = replace(down, number=4, outage=Outage(5.0, True, "recovers", 120.0))
    facts = drill_facts(struck(plan, hung, waits, slow), INFO)
    (sentence,) = [one for one in facts.sentences if "wal-full" in one]
    assert "in 1 of 3 cuts the server was still recovering 120 s after the load;" in sentence
    shown = render_md(facts)
    assert "5.00 s, still recovers after 120 s" in shown
    assert "4.50 s, neither comes back nor ends in 120 s" in shown
    assert "9.00 s, waits for a standby" in shown
    assert "not drilled" in shown, "the other stages, of which the drill has no such cut"

    alone = drill_facts(struck(plan, up), INFO)
    (sentence,) = [one for one in alone.sentences if "wal-full" in one]
    assert sentence.endswith(" The server came back by itself each time, without a commit for"
                             " 0.25 s at most.")  # fmt: skip


def test_what_a_standby_lacks_speaks_against_d0_only_where_commits_waited_for_it(
    plan: Plan,
) -> None:
    first = plan.stages[0].name
    made = drill(plan)
    asked = replace(made.asked, disasters=named(("failover", "failover-sync")))
    cuts = tuple(cut(first, one.name, 1, "lost", lost=3) for one in asked.disasters)

    doubts = drill_facts(replace(made, asked=asked, cuts=cuts), INFO).doubts

    assert [one for one in doubts if "did harm" in one] == [
        f"Stage {first} is on rung D0, which loses nothing, and 1 cut of failover-sync did harm:"
        " 3 acknowledged commits are gone."
    ]


def test_a_fault_that_no_call_met_proves_nothing(plan: Plan) -> None:
    idle = replace(cut(plan.stages[0].name, "wal-full", 1, "whole"), met=0)

    doubts = drill_facts(struck(plan, idle), INFO).doubts

    assert [one for one in doubts if "no call met the fault: they prove nothing" in one]


def test_another_run_takes_what_was_lost_by_its_stages_or_by_their_rungs(
    plan: Plan, facts: Facts
) -> None:
    first, second, *_ = (stage.name for stage in plan.stages)
    found = with_losses(facts.stages, plan, Losses("a-drill", drill(plan)))

    by_name = {one.name: one.measured for one in found}
    assert [one.took.words for one in by_name[first]] == ["nothing in 4 cuts"] * 2
    assert all(one.is_same and one.stages == (first,) for one in by_name[first])
    assert next(one.took.words for one in by_name[second]) == "up to 40.0 ms of commits in 2 of 4"

    other = replace(drill(plan), cuts=tuple(one for one in drill(plan).cuts if one.stage == second))
    renamed = replace(plan, stages=tuple(
        replace(one, name=f"{one.name}-elsewhere") for one in plan.stages
    ))  # fmt: skip
    asked = replace(other.asked, plan=renamed,
                    stages=tuple(f"{one}-elsewhere" for one in other.asked.stages))  # fmt: skip
    other = replace(other, asked=asked, cuts=tuple(
        replace(one, stage=f"{one.stage}-elsewhere") for one in other.cuts
    ))  # fmt: skip
    by_rung = {
        one.name: one.measured for one in with_losses(facts.stages, plan, Losses("a-drill", other))
    }
    rung = plan.stage(second).rung_known
    alike = [one.name for one in plan.stages if one.rung_known == rung]
    for name, measured in by_rung.items():
        stage = next(one for one in facts.stages if one.name == name)
        assert all(not one.is_same for one in measured)
        assert bool(measured) == (stage.rung == rung), (name, alike)
    assert with_losses(facts.stages, plan, None) == facts.stages


def test_what_was_lost_stands_in_the_answer_in_place_of_what_may_be(
    plan: Plan, facts: Facts
) -> None:
    lossy = max(facts.stages, key=lambda one: one.rung)
    better = replace(lossy, to_first=replace(facts.stages[-1].to_first or facts.stages[1].to_first,
                                             verdict="better", ratio=1.5))  # fmt: skip
    took = Took("up to 0.81 s of commits in 3 of 8", "lost")
    loss = MeasuredLoss("crash", took, share(3, 8), (lossy.name,), True, "a-drill", "tpcb")

    (told, *_) = plain((facts.stages[0], replace(better, measured=(loss,))))
    assert "but when disasters were rehearsed, crash took up to 0.81 s of commits in 3" in told

    whole = replace(loss, took=Took("nothing in 8 cuts", "whole"), harmed=share(0, 8))
    (told, *_) = plain((facts.stages[0], replace(better, measured=(whole,))))
    assert "; 8 rehearsed disasters took nothing." in told


@pytest.mark.parametrize("wrong", [{"cuts": 0}, {"load_s": 0.5}, {"disasters": ()}])
def test_a_design_that_makes_no_cut_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(PlanError, match=r"cuts of \d disasters into"):
        replace(DESIGN, **wrong)  # type: ignore[arg-type]  # whatever it is
