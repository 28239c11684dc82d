"""What is left of a run: whole rounds, failures once, and only where the run was begun."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.model.errors import PlanError
from pgdyno.model.run import TrialRecord, TrialState
from pgdyno.plan.remaining import rest_of
from pgdyno.plan.same_machine import require_same
from tests.data.miniature import CHARACTERS, a_plan

PLAN = a_plan(CHARACTERS, 3)  # three stages in three rounds
DONE, BAD, LOST = TrialState.FINISHED, TrialState.FAILED, TrialState.INVALID
HOST = {"kernel": "6.1.0", "cpu_mhz": 2000, "huge_pages_free": 110, "memory_bytes": 8 << 30,
        "sysctl": {"vm/swappiness": "60"}, "file_system": {"options": "rw,relatime"}}  # fmt: skip


def trials(**states: TrialState) -> list[TrialRecord]:
    """All finished, but those named by number, e.g. t5."""
    return [
        TrialRecord(t.number, t.round, t.stage, t.ident, states.get(f"t{t.number}", DONE))
        for t in PLAN.trials
    ]


def numbers(found: object) -> list[int]:
    return [trial.number for trial in found]  # type: ignore[attr-defined]


def test_nothing_is_left_of_what_is_finished() -> None:
    rest = rest_of(PLAN, trials())
    assert (rest.todo, rest.repeated, rest.notes) == ((), (), ())


@pytest.mark.parametrize(("state", "word"), [(BAD, "failed"), (LOST, "was invalid")])
def test_a_failed_or_invalid_trial_is_repeated_with_its_round(state: TrialState, word: str) -> None:
    rest = rest_of(PLAN, trials(t5=state))
    assert numbers(rest.todo) == list(rest.repeated) == [4, 5, 6]
    stage = PLAN.trials[4].stage
    assert rest.notes == (f"round 2 is measured again as a whole: {stage} {word}",)


@pytest.mark.parametrize("state", [TrialState.PLANNED, TrialState.RUNNING])
def test_a_round_that_was_broken_off_is_repeated_and_those_after_it_begun(
    state: TrialState,
) -> None:
    planned = {f"t{n}": TrialState.PLANNED for n in (6, 7, 8, 9)}
    rest = rest_of(PLAN, trials(**{**planned, "t5": state}))
    assert numbers(rest.todo) == [4, 5, 6, 7, 8, 9]
    assert rest.repeated == (4, 5, 6)
    assert rest.notes == ("round 2 is measured again as a whole: it was interrupted",)


def test_a_trial_that_went_on_without_a_host_stands() -> None:
    rest = rest_of(PLAN, trials(t5=TrialState.DEGRADED))
    assert (rest.todo, rest.repeated, rest.notes) == ((), (), ())


def test_a_host_that_was_lost_is_no_failure_that_is_repeated_once_only() -> None:
    now = trials(t5=LOST)
    before = [
        replace(trial, number=20 + trial.number, replaced_by=trial.number, host_lost=True)
        for trial in now[3:6]
    ]
    assert numbers(rest_of(PLAN, now, before).todo) == [4, 5, 6]
    own = [replace(trial, host_lost=False) for trial in before]
    assert not rest_of(PLAN, now, own).todo


def test_what_failed_twice_is_not_repeated_until_asked_for() -> None:
    now = trials(t5=LOST)
    before = [
        replace(trial, number=20 + trial.number, replaced_by=trial.number) for trial in now[3:6]
    ]
    rest = rest_of(PLAN, now, before)
    assert (rest.todo, rest.repeated) == ((), ())
    (line,) = rest.notes
    assert "round 2 stays as it is" in line
    assert "--again" in line
    assert numbers(rest_of(PLAN, now, before, again=True).todo) == [4, 5, 6]


def test_an_interruption_is_no_failure() -> None:
    broken = [replace(t, state=TrialState.RUNNING, replaced_by=t.number) for t in trials()[3:6]]
    assert numbers(rest_of(PLAN, trials(t5=BAD), broken).todo) == [4, 5, 6]


def test_the_same_machine_goes_on() -> None:
    require_same(HOST, {**HOST, "cpu_mhz": 3000, "huge_pages_free": 29})


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"kernel": "6.2.0"}, "kernel was 6.1.0, is 6.2.0"),
        ({"memory_bytes": 4 << 30},
         "memory_bytes was 8.00 GiB (8589934592 bytes), is 4.00 GiB (4294967296 bytes)"),
        ({"sysctl": {"vm/swappiness": "1"}}, "sysctl: vm/swappiness was 60, is 1"),
        ({"file_system": {"options": "rw,nobarrier"}},
         "file_system: options was rw,relatime, is rw,nobarrier"),
        ({"driver": "abc"}, "driver was unknown, is abc"),
    ],
)  # fmt: skip
def test_another_machine_is_refused_with_both_values(changed: dict[str, object], told: str) -> None:
    with pytest.raises(PlanError) as caught:
        require_same(HOST, {**HOST, **changed})
    assert caught.value.fact.endswith(told)


def test_what_a_look_saw_is_not_exchanged() -> None:
    rest = rest_of(PLAN, trials(t5=BAD), looked=2)
    assert (rest.todo, rest.repeated) == ((), ())
    stage = PLAN.trials[4].stage
    assert rest.notes == (f"round 2 stays as it is: {stage} failed, and a look was taken on it",)
    assert numbers(rest_of(PLAN, trials(t5=BAD), looked=1).todo) == [4, 5, 6]


def test_stages_that_are_decided_are_left_out() -> None:
    planned = {f"t{n}": TrialState.PLANNED for n in (7, 8, 9)}
    decided = PLAN.trials[7].stage
    rest = rest_of(PLAN, trials(**planned), until={decided: 2}, looked=2)
    assert [(one.stage, one.round) for one in rest.todo] == [
        (one.stage, 3) for one in PLAN.trials[6:9] if one.stage != decided
    ]
