"""How far a call is, in one line, whatever the call."""

from __future__ import annotations

from pathlib import Path

from pgdyno.live.progress_line import ProgressLine
from pgdyno.model.knee import Point
from pgdyno.model.progress import (
    DriveProgress,
    ExportProgress,
    LoadProgress,
    Noted,
    PhaseBegun,
    PointMeasured,
    RunBegun,
    StepBegun,
    TrialEnded,
)
from pgdyno.model.run import TrialRecord, TrialState
from tests.data.miniature import CHARACTERS, a_plan

TRIAL = TrialRecord(1, 1, "tuned", "x", TrialState.RUNNING)
DRIVING = DriveProgress("window", 3.0, last_second={"new_order": 5, "payment": 5}, failed=1)


def test_what_has_no_plan_says_what_it_does() -> None:
    line = ProgressLine()
    assert line.hear("compiling 10 of 90 files") == "compiling 10 of 90 files"
    assert line.hear(ExportProgress(False, 10, 40, 2048, 1.0)) == "10 of 40 rows, 2.00 KiB written"
    assert line.hear(StepBegun("flushes on /data")) == "flushes on /data"
    assert line.hear(PointMeasured(Point(20, 20, 20, 1, 2, 9), False)) == "20: limit broken"
    assert line.hear(DRIVING) == "window: 600 tpmTotal and 300 NOPM now, 3 s of it left, 1 failed"
    loading = LoadProgress("copy", 5, 10, 1, 1024.0, 1.0, 0.5, 7.0)
    assert line.hear(loading) == "copy: 5 of 10 rows, 1.00 KiB/s, 7 s left"
    assert line.hear(Noted("a pooler stands in between")) is None
    assert line.hear(object()) is None


def test_a_run_says_which_trial_and_how_long_it_takes_still() -> None:
    line = ProgressLine()
    begun = line.hear(RunBegun(Path("run.sqlite"), a_plan(CHARACTERS, 3), 9))
    assert begun is not None
    assert begun.startswith("fixture, ")
    phase = line.hear(PhaseBegun(TRIAL, "restore"))
    assert phase is not None
    assert phase.startswith("trial 1 of 9, stage tuned, ")
    assert phase.endswith(" left for the plan: restoring the fixture")
    driven = line.hear(DRIVING)
    assert driven is not None
    assert driven.endswith("s of it left, 1 failed")
    ended = line.hear(TrialEnded(TRIAL))
    assert ended is not None
    assert ended.startswith("trial 1 of 9"), "whose stage and phase the line has, too"
