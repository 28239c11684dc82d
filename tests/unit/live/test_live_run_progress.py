"""How far a run is, and what of it goes to viewers, by a clock of the test's own."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

import pgdyno
from pgdyno.live.line import Line
from pgdyno.live.over_time import POINTS_MAX
from pgdyno.live.run_progress import PHASES, Moment, RunProgress, driving_text, rates
from pgdyno.model.progress import (
    DriveProgress,
    LoadProgress,
    LookTaken,
    PhaseBegun,
    RunBegun,
    StepBegun,
    TrialEnded,
)
from pgdyno.model.run import TrialRecord, TrialState
from tests.data.miniature import CHARACTERS, WARMUP_S, WINDOW_S, a_plan

PLAN = a_plan(CHARACTERS, 3)
EACH_S = WARMUP_S + WINDOW_S + PLAN.estimate.other_s / 9
BEGUN = RunBegun(Path("run.sqlite"), PLAN, 9)


class Clock:
    """Stands until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def a_trial(number: int = 1) -> TrialRecord:
    return TrialRecord(number, 1, "tuned", "x", TrialState.RUNNING)


def test_before_a_run_begins_nothing_is_known() -> None:
    moment = RunProgress(Clock()).moment()

    assert (moment.phase, moment.left_s, moment.share, moment.number) == (
        "starting",
        0.0,
        0.0,
        None,
    )


def test_the_time_left_goes_with_the_clock_and_then_by_what_trials_took() -> None:
    clock = Clock()
    progress = RunProgress(clock)
    progress.hear(BEGUN)
    assert progress.left_s() == pytest.approx(9 * EACH_S)

    trial = a_trial()
    progress.hear(PhaseBegun(trial, "restore"))
    clock.now += EACH_S / 4
    progress.hear(PhaseBegun(trial, "drive"))
    assert progress.left_s() == pytest.approx(8.75 * EACH_S)
    assert progress.moment().share == pytest.approx(0.25)

    clock.now += 10 * EACH_S
    assert progress.left_s() == pytest.approx(8 * EACH_S), "a late trial takes none of the others"
    assert progress.moment().share == 1.0

    clock.now += 60 - 10.25 * EACH_S  # it took a minute in all
    progress.hear(TrialEnded(trial))
    progress.hear(PhaseBegun(a_trial(2), "restore"))
    assert progress.left_s() == pytest.approx(8 * 60)
    assert progress.moment().done == 1


def test_the_time_left_goes_down_while_the_fixture_is_made_and_does_not_jump_after_it() -> None:
    clock = Clock()
    progress = RunProgress(clock)
    loading = replace(PLAN, estimate=replace(PLAN.estimate, other_s=90.0))
    progress.hear(replace(BEGUN, plan=loading))
    all_s = progress.left_s()
    progress.hear(PhaseBegun(None, "load"))
    clock.now += 60.0
    assert progress.left_s() == pytest.approx(all_s - 60.0)

    progress.hear(PhaseBegun(a_trial(), "restore"))
    assert progress.left_s() == pytest.approx(all_s - 60.0)


def test_before_the_first_trial_ended_the_estimate_of_the_plan_holds() -> None:
    """Trials of whole checkpoint cycles take several times the protocol's warm-up and window."""
    cycles = replace(PLAN, estimate=replace(PLAN.estimate, measuring_s=900.0, other_s=180.0))
    progress = RunProgress(Clock())
    progress.hear(replace(BEGUN, plan=cycles))
    assert progress.left_s() == pytest.approx(1080)
    assert progress.left_text() == "18 min 00 s left for the plan"


def test_the_time_left_of_a_plan_with_looks_is_said_to_be_the_most() -> None:
    looked = replace(PLAN, protocol=replace(PLAN.protocol, stop="decided", rounds=8))
    progress = RunProgress(Clock())
    progress.hear(replace(BEGUN, plan=looked))
    assert progress.left_text().endswith(" left if no look decides")


def test_while_a_trial_is_late_the_time_left_is_said_to_be_the_least() -> None:
    """It stood still for minutes: a window of a whole checkpoint cycle was a long one."""
    clock = Clock()
    progress = RunProgress(clock)
    progress.hear(BEGUN)
    progress.hear(PhaseBegun(a_trial(), "drive"))
    clock.now += 0.9 * EACH_S
    assert not progress.left_text().startswith("at least")

    clock.now += 10 * EACH_S
    assert progress.left_text().startswith("at least ")
    assert progress.moment().is_late

    progress.hear(TrialEnded(a_trial()))
    progress.hear(PhaseBegun(a_trial(2), "drive"))
    assert not progress.moment().is_late, "now it is known what one takes"


def test_a_look_says_how_many_are_left() -> None:
    progress = RunProgress(Clock())
    progress.hear(BEGUN)
    progress.hear(TrialEnded(a_trial()))
    progress.hear(LookTaken(1, ("decided",), 2))

    assert (progress.done, progress.todo) == (1, 3)


def test_a_run_that_goes_on_counts_anew() -> None:
    progress = RunProgress(Clock())
    progress.hear(BEGUN)
    progress.hear(TrialEnded(a_trial()))
    progress.hear(replace(BEGUN, todo=4))

    assert (progress.done, progress.todo) == (0, 4)


def test_a_trial_of_a_run_that_goes_on_has_the_number_of_its_line() -> None:
    """The line while it was measured said *trial 1 of 2*, the one that stayed *trial 8 of 9*."""
    progress = RunProgress(Clock())
    progress.hear(replace(BEGUN, todo=2))
    trial = a_trial(8)
    progress.hear(PhaseBegun(trial, "drive"))

    assert progress.place_text == "trial 8 of 9"
    assert " ".join(progress.head_of(trial).split()).startswith("trial 8 of 9 ")
    assert (progress.moment().number, progress.moment().trials) == (8, 9)


def test_after_the_last_trial_it_is_still_at_the_last() -> None:
    progress = RunProgress(Clock())
    progress.hear(BEGUN)
    assert progress.place_text == "fixture"
    trial = a_trial(9)
    for _ in range(9):
        progress.hear(PhaseBegun(trial, "drive"))
        progress.hear(TrialEnded(trial))
    progress.hear(PhaseBegun(trial, "wal"))
    assert progress.place_text == "trial 9 of 9", "and not 10 of 9"


@pytest.mark.parametrize(
    ("follows", "phase", "early"),
    [("cycles", "window", True), ("cycles", "drain", False), ("ignore", "window", False),
     ("anchors", "warmup", True)],
)  # fmt: skip
def test_what_ends_with_a_checkpoint_has_at_most_its_seconds_left(
    follows: Literal["cycles", "ignore", "anchors"], phase: str, early: bool
) -> None:
    stages = tuple(replace(stage, checkpoints=follows) for stage in PLAN.stages)
    progress = RunProgress(Clock())
    progress.hear(replace(BEGUN, plan=replace(PLAN, stages=stages)))
    progress.hear(PhaseBegun(a_trial(), "drive"))
    drive = DriveProgress(phase, 1281.0, 1.0, {}, {"tpcb": 5})
    progress.hear(drive)
    assert progress.moment().may_end_early is early
    said = driving_text(drive, at_most=progress.may_end_early)
    assert said.endswith("1281 s of it left at most" if early else "1281 s of it left")


def test_every_phase_of_a_trial_has_words() -> None:
    sources = (Path(pgdyno.__file__).parent / "trial").rglob("*.py")
    named = {name for one in sources
             for name in re.findall(r'\bphase\("(\w+)"\)', one.read_text())}  # fmt: skip
    assert len(named) > 10
    assert named <= PHASES.keys()


def test_loading_driving_and_steps_are_told_apart() -> None:
    progress = RunProgress(Clock())
    load = LoadProgress("copy", 1, 2, 3, 4.0, 5.0, 0.5, 6.0)
    progress.hear(load)
    assert progress.moment().load == load
    drive = DriveProgress("window", 3.0, 1.0, {}, {"tpcb": 5})
    progress.hear(drive)
    assert (progress.moment().load, progress.moment().drive) == (None, drive)
    progress.hear(StepBegun("random reads of /srv"))
    assert progress.moment().step == "random reads of /srv"
    progress.hear(PhaseBegun(None, "load"))
    assert progress.moment().drive is None
    assert progress.moment().phase_text == "loading the fixture"
    assert replace(progress.moment(), phase="sweeping").phase_text == "sweeping"


def test_the_first_rate_counts_all_kinds() -> None:
    assert list(rates({"new_order": 5, "payment": 5}).items()) == [("tpmTotal", 600), ("NOPM", 300)]
    assert rates({"tpcb": 7}) == {"tps": 7}


# -- the line ---------------------------------------------------------------------------------


def told(second: float, rate: int, number: int = 1, phase: str = "window") -> Moment:
    drive = DriveProgress(phase, 1.0, second, {"tpcb": 1}, {"tpcb": rate})
    return Moment("drive", 0, 1, 0.0, number=number, stage="tuned", drive=drive)


def test_each_second_counts_once_and_what_was_not_told_is_a_gap() -> None:
    line = Line()
    for second, rate in ((0.5, 1), (1.1, 10), (1.6, 10), (2.1, 20), (4.2, 40)):
        line.hear(told(second, rate, phase="warmup" if second < 2 else "window"))

    assert line.values == [1, 10, 20, None, 40]
    assert (line.step_s, line.window_from_s, line.unit) == (1, 2.1, "tps")


def test_another_trial_begins_anew_and_so_does_one_that_is_measured_again() -> None:
    line = Line()
    line.hear(told(5, 50))
    line.hear(told(0, 7, number=2))
    assert line.values == [7]
    line.hear(told(3, 9, number=2))
    line.hear(told(0, 8, number=2))
    assert line.values == [8]
    line.hear(replace(told(0, 0, number=3), drive=None))
    assert line.values == [], "the next one is being prepared, and nothing is told of it yet"


@pytest.mark.parametrize("seconds", [POINTS_MAX, POINTS_MAX + 1, 10 * POINTS_MAX + 7])
def test_a_long_trial_is_averaged_and_keeps_its_mean(seconds: int) -> None:
    line = Line()
    for second in range(seconds):
        line.hear(told(second, second))

    assert len(line.values) <= POINTS_MAX
    assert line.values[0] == (line.step_s - 1) / 2
    assert len(line.values) == -(-seconds // line.step_s)
    assert line.values == sorted(line.values)
