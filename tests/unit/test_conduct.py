"""Which trials are valid: the load must have been the one that the plan asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.conduct import judge
from pgdyno.model.run import Condition, TrialResult, TrialState
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature


@pytest.fixture
def result(tmp_path: Path) -> TrialResult:
    """A good trial's result, from a made-up run file."""
    write_miniature(tmp_path / "run.sqlite")
    with RunFile.read(tmp_path / "run.sqlite") as run:
        found = run.finished()[0].result
    assert found is not None
    return replace(found, errors=(), reconnects=0)


def line(level: str, text: str) -> str:
    return f"2026-11-21 22:10:32.000 UTC [41] {level}:  {text}\n"


def test_a_good_trial_is_finished(result: TrialResult) -> None:
    assert judge(result, line("LOG", "ready")) == (TrialState.FINISHED, None)


def test_inconsistent_data_make_it_invalid(result: TrialResult) -> None:
    broken = Condition(4, "sum(O_OL_CNT) = lines", 2, "(1, 1, 30, 29)", 0.1)

    state, reason = judge(replace(result, conditions=(broken,)), None)

    assert state is TrialState.INVALID
    assert reason is not None
    assert "condition 4" in reason
    assert "(1, 1, 30, 29)" in reason


def test_failed_transactions_make_it_invalid(result: TrialResult) -> None:
    kind = result.kinds[0]
    failed = replace(kind, run=replace(kind.run, due=kind.run.due + 3, failed=3))
    errors = ({"sqlstate": "23505", "count": 3, "example": "duplicate key"},)

    state, reason = judge(replace(result, kinds=(failed,), errors=errors), None)

    assert state is TrialState.INVALID
    assert "3 transactions failed" in str(reason)
    assert "23505" in str(reason)


def test_lost_connections_make_it_invalid(result: TrialResult) -> None:
    state, reason = judge(replace(result, reconnects=2), None)

    assert (state, reason) == (TrialState.INVALID, "2 connections were lost")


def test_a_window_without_a_commit_is_invalid(result: TrialResult) -> None:
    nothing = tuple(
        replace(kind, window=replace(kind.window, succeeded=0)) for kind in result.kinds
    )

    state, reason = judge(replace(result, kinds=nothing), None)

    assert (state, reason) == (TrialState.INVALID, "no transaction succeeded in the window")


def test_errors_in_the_servers_log_make_it_invalid(result: TrialResult) -> None:
    log = line("ERROR", "could not extend file") + line("ERROR", "could not extend file")

    state, reason = judge(result, log)

    assert state is TrialState.INVALID
    assert reason == "the server reported 2 errors, first ERROR: could not extend file"


@pytest.mark.parametrize(
    ("level", "text"),
    [
        ("FATAL", "the database system is starting up"),
        ("ERROR", "deadlock detected"),
        ("ERROR", "could not serialize access due to concurrent update"),
    ],
)
def test_what_is_expected_or_retried_is_no_reason(
    result: TrialResult, level: str, text: str
) -> None:
    assert judge(result, line(level, text)) == (TrialState.FINISHED, None)


def test_a_driver_that_gave_up_makes_it_invalid(result: TrialResult) -> None:
    errors = ({"sqlstate": "gave_up", "count": 1, "example": "no connection"},)

    state, reason = judge(replace(result, errors=errors), None)

    assert (state, reason) == (
        TrialState.INVALID, "the driver did not reach the end of the window",
    )  # fmt: skip
