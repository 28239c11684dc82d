"""Trials that pgbench drove: named, compared with care, and its own word beside."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.comparable import differences, shared
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.protocol import protocol_costs
from pgdyno.model.run import PgbenchStatement, PgbenchSummary, TrialRecord, TrialState
from pgdyno.report import markdown
from pgdyno.report.sections import pgbench, trust
from tests.data.miniature import CHARACTERS, a_plan, a_result

ENGINE = "pgbench (PostgreSQL) 18.6"
COMMANDS = (PgbenchStatement("tpcb", "END;", 0.002, 1, 3),)
SAID = PgbenchSummary(ENGINE, 1234, 1, 3, 98.7, 0.0101, 0.0033, None, COMMANDS)
PLAN = a_plan(CHARACTERS[:2], rounds=1)


def trials(*engines: str) -> list[TrialRecord]:
    return [
        TrialRecord(
            trial.number, trial.round, trial.stage, trial.ident, TrialState.FINISHED,
            result=replace(a_result(), engine=engine),
        )
        for trial, engine in zip(PLAN.trials, engines, strict=True)
    ]  # fmt: skip


def test_a_difference_of_engines_is_named() -> None:
    found = {one.what: one for one in differences(PLAN, trials("pgdyno", ENGINE))}

    assert found["engine"].values == ("pgdyno in trial 1", f"{ENGINE} in trial 2")
    assert found["engine"].explanation is None


def test_a_difference_that_the_plan_asks_for_is_explained() -> None:
    first, second = PLAN.stages
    by_pgbench = replace(second, workload=replace(second.workload, engine="pgbench"))
    plan = replace(PLAN, stages=(first, by_pgbench))

    found = {one.what: one for one in differences(plan, trials("pgdyno", ENGINE))}

    assert found["engine"].explanation == "the plan gives these stages other clients"


def test_one_engine_is_what_all_trials_share() -> None:
    same = trials(ENGINE, ENGINE)

    assert "engine" not in {one.what for one in differences(PLAN, same)}
    assert shared(PLAN, same)["engine"] == ENGINE


def test_stages_whose_round_trips_nobody_told_have_no_price() -> None:
    ours, theirs = trials("pgdyno", ENGINE)
    assert theirs.result is not None
    unlogged = replace(
        theirs.result, round_trips_per_transaction=None, statements_per_transaction=None
    )

    costs = protocol_costs(PLAN, [ours, replace(theirs, result=unlogged)])

    assert [cost.stage for cost in costs] == [ours.stage]


def test_its_own_word_stands_beside(facts: Facts) -> None:
    assert pgbench.section(facts) is None

    told = replace(facts.trials[0], engine=ENGINE, pgbench=SAID)
    text = markdown.render(replace(facts, trials=(told, *facts.trials[1:])))

    assert "## What pgbench itself says" in text
    assert "| 1 initdb | 1,234 | 1 | 3 | 99 | 10.100 | 3.300 | – |" in text
    assert "| tpcb: END; | initdb | 2.000 | 1 | 3 |" in text
    assert "the warm-up included" in text


def test_inputs_that_nobody_told_are_not_audited(facts: Facts) -> None:
    section = trust.section(replace(facts, audit=()))

    assert "not audited: pgbench does not report them" in str(section)
