"""What is said of requests without an answer, and when a window must not be used for them."""

from __future__ import annotations

import pytest

from pgdyno.model.run import Counts
from pgdyno.stats.finding import Clear, Finding, Unknown
from pgdyno.stats.window_end import answer_of, exact_below, stuck_reason, window_end

DRAINED = Counts(due=100, succeeded=92, unfinished=8, drained=8)


def test_what_was_answered_in_the_drain_leaves_nothing_open() -> None:
    end = window_end([DRAINED, DRAINED], None)

    assert isinstance(answer_of(end), Clear)
    assert "16 of them after its end" in answer_of(end).fact
    assert stuck_reason(end) is None


def test_requests_without_an_answer_are_told_with_numbers() -> None:
    lost = Counts(due=1_100, succeeded=1_088, unfinished=12, drained=0, unanswered=12)

    found = answer_of(window_end([DRAINED, lost], 5.0))

    assert isinstance(found, Finding)
    assert found.fact == (
        "12 requests due in the window (of 1,200) had no answer 5.0 s after its end:"
        " they count as at least that; ≥ marks lower bounds"
    )
    assert {one.name: one.value for one in found.evidence}["requests_unanswered"] == 12


def test_a_server_that_was_silent_all_through_the_drain_spoils_the_window() -> None:
    waiting = Counts(due=50, unfinished=50, drained=0, unanswered=50)
    stuck = Counts(due=4, unfinished=4, drained=0, unanswered=4, stuck=1)

    assert stuck_reason(window_end([waiting], 2.0)) is None  # an overload, measured
    assert stuck_reason(window_end([waiting, stuck], 2.0)) == (
        "1 request sent in the window had no answer 2.0 s after its end:"
        " how long the server stood still is not known"
    )


@pytest.mark.parametrize(
    ("counts", "unlogged", "said"),
    [
        (Counts(due=7, succeeded=5, skipped=2, drained=0), 0, "2 requests due in the window were"),
        (DRAINED, 1_180, "about 1,180 requests due in the window by pgbench's rate"),
    ],
)
def test_what_was_never_sent_is_told(counts: Counts, unlogged: int, said: str) -> None:
    found = answer_of(window_end([counts], None, unlogged))

    assert isinstance(found, Finding)
    assert found.fact.startswith(said)


def test_earlier_run_files_do_not_tell() -> None:
    found = answer_of(window_end([Counts(due=9, succeeded=6, unfinished=3)], None))

    assert isinstance(found, Unknown)
    assert found.fact.startswith("3 requests under way at the window's end have no time")
    assert isinstance(answer_of(window_end([Counts(due=6, succeeded=6)], None)), Clear)


def test_lower_bounds_of_merged_values_begin_at_the_least() -> None:
    assert exact_below([{"p50": 1}, {"p50": 1, "exact_below": 9}, {"exact_below": 7}]) == 7
    assert exact_below([{"p50": 1}]) is None


def test_requests_that_failed_have_no_time_and_that_is_said() -> None:
    outage = Counts(due=1_100, succeeded=1_050, failed=38, unfinished=12, drained=10)

    found = answer_of(window_end([DRAINED, outage], None))

    assert isinstance(found, Finding)
    assert found.fact == (
        "40 requests due in the window (of 1,200) failed and have no time:"
        " percentiles and maximum are those of the others"
    )
    assert {one.name: one.value for one in found.evidence}["requests_failed"] == 40


def test_lower_bounds_and_failures_of_one_window_are_both_told() -> None:
    both = Counts(due=20, succeeded=10, failed=3, unfinished=7, drained=2, unanswered=4)

    fact = answer_of(window_end([both], 5.0)).fact

    assert fact.startswith("4 requests due in the window (of 20) had no answer 5.0 s after")
    assert "; 4 requests due in the window (of 20) failed and have no time" in fact
    assert fact.endswith("; ≥ marks lower bounds")
