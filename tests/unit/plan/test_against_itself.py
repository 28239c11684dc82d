"""A/A: one stage twice, in every round, in changing order; and what its report says of noise."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts, NoiseFloor
from pgdyno.model.errors import PlanError
from pgdyno.model.plan import Plan
from pgdyno.plan import read_plan
from pgdyno.plan.against_itself import against_itself
from pgdyno.plan.resolve.plan import resolve
from pgdyno.report.noise import lines
from tests.data.servers import HOST, installed


@pytest.fixture(scope="module")
def tuning() -> Plan:
    return resolve(
        read_plan("plans/tuning.toml", ["protocol.stop=rounds", "protocol.rounds=4"]),
        installed(18),
        HOST,
    )


def test_a_stage_is_measured_twice_in_every_round(tuning: Plan) -> None:
    alone = against_itself(tuning, "async-commit")

    first, second = alone.stages
    assert (first.name, second.name) == ("async-commit", "async-commit-twin")
    assert second.twin_of == first.name
    assert first.settings == second.settings == tuning.stage("async-commit").settings
    by_round = [[t.stage for t in alone.trials if t.round == one] for one in range(1, 5)]
    assert by_round == [[first.name, second.name], [second.name, first.name]] * 2
    assert [trial.number for trial in alone.trials] == list(range(1, 9))


def test_the_twin_differs_by_its_name_alone(tuning: Plan) -> None:
    """Else windows of whole checkpoint cycles are held against windows by the clock."""
    first, second = against_itself(tuning, "async-commit").stages
    assert first.checkpoints == "cycles"
    assert replace(second, name=first.name, why=first.why, twin_of=None) == replace(
        first, expects=None
    )


def test_its_trials_are_those_of_the_plan(tuning: Plan) -> None:
    alone = against_itself(tuning)

    idents = {t.round: t.ident for t in tuning.trials if t.stage == tuning.stages[0].name}
    assert {trial.ident for trial in alone.trials} == set(idents.values())
    assert alone.estimate.measuring_s == pytest.approx(tuning.estimate.measuring_s * 2 / 3)


def test_no_look_ends_it() -> None:
    decided = resolve(read_plan("plans/tuning.toml"), installed(18), HOST)

    alone = against_itself(decided, "tuned")

    assert decided.protocol.stop == "decided"
    assert alone.protocol.stop == "rounds"
    assert len(alone.trials) == 2 * decided.protocol.rounds


def test_what_cannot_be_is_refused(tuning: Plan) -> None:
    with pytest.raises(PlanError, match="there is no stage tunes, known are initdb, tuned"):
        against_itself(tuning, "tunes")
    short = replace(tuning, protocol=replace(tuning.protocol, rounds=2))
    with pytest.raises(PlanError, match=r"protocol\.rounds is 2, at least 3"):
        against_itself(short)


def test_rounds_that_a_difference_takes_are_told(facts: Facts) -> None:
    floor = NoiseFloor(0.02, 0.01, 0.03, "they differ", ("few rounds",), ((0.01, None), (0.1, 4)))

    assert lines(replace(facts, noise_floor=floor)) == [
        "Noise floor: they differ.",
        "Noise floor: few rounds.",
        "To see a difference with 80% chance takes: more than 1,000 rounds for 1%;"
        " 4 rounds for 10%.",
    ]
    assert lines(replace(facts, noise_floor=None)) == []
