"""The line of a trial: on the window's time axis, cut at its end, short enough to draw."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pgdyno.analysis.facts import TrialFacts
from pgdyno.analysis.trials import MARKS_MAX, POINTS_MAX, trial_facts
from pgdyno.model.event_detail import EventDetail
from pgdyno.model.run import Event, Series, TrialRecord, TrialState
from tests.data.miniature import a_result

SECOND_NS = 1_000_000_000
RESULT = a_result()
BEGIN_NS = RESULT.window_ns[0]


def told(counts: list[float], *events: Event, first_s: float = -2) -> TrialFacts:
    unix_ns = BEGIN_NS + round(first_s * SECOND_NS) + np.arange(len(counts)) * SECOND_NS
    values = np.array(counts)
    series = {
        name: Series(name, "1/s", "rate", unix_ns, values * share)
        for name, share in (("driver.committed.payment", 0.75), ("driver.rolled_back", 0.25))
    }
    result = replace(RESULT, events=events)
    record = TrialRecord(1, 1, "s", "", TrialState.FINISHED, result=result)
    return trial_facts(record, series, server_on_host=True)


def at(second: float) -> int:
    return BEGIN_NS + int(second * SECOND_NS)


def test_kinds_and_rollbacks_are_added_and_warmup_is_negative() -> None:
    line = told([10.0] * 32).timeline
    assert line is not None
    assert line.second[:3] == (-1.5, -0.5, 0.5)
    assert line.tpm[0] == pytest.approx(600)
    assert line.second[-1] == 29.5


def test_the_drain_is_cut_off() -> None:
    line = told([10.0] * 32 + [1.0] * 5).timeline
    assert line is not None
    assert line.second[-1] == 29.5
    assert min(line.tpm) == pytest.approx(600)


def test_a_long_line_is_averaged() -> None:
    line = told([float(n) for n in range(1_000)], first_s=-970).timeline
    assert line is not None
    assert len(line.tpm) <= POINTS_MAX
    assert line.step_s == 5
    assert line.tpm[0] == pytest.approx((0 + 1 + 2 + 3 + 4) / 5 * 60)


@pytest.mark.parametrize("seconds", [3_600, 3_607])
def test_a_stall_of_a_second_is_seen_in_an_hour(seconds: int) -> None:
    """In the middle, and in the last second, which is no whole point where they do not divide."""
    per_s = [100.0 + n % 3 for n in range(seconds)]
    per_s[1_234] = per_s[-1] = 0.0
    line = told(per_s, first_s=30 - seconds).timeline
    assert line is not None
    assert len(line.tpm) <= POINTS_MAX
    assert min(line.tpm[:-1]) > 90 * 60, "a mean hides it"
    step = int(line.step_s)
    assert [at for at, least in enumerate(line.least) if least == 0] == [
        1_234 // step, (seconds - 1) // step
    ]  # fmt: skip
    assert max(line.greatest) == 102 * 60
    assert line.second[-1] == pytest.approx(30 - (seconds - (seconds - 1) // step * step) / 2)


def test_a_second_that_was_cut_short_is_no_stall_and_single_seconds_have_no_envelope() -> None:
    whole, cut = told([10.0] * 32).timeline, told([10.0] * 999 + [3.0], first_s=-969.6).timeline
    assert whole is not None
    assert cut is not None
    assert whole.least == whole.greatest == ()
    assert min(cut.least) == 600


def test_checkpoints_are_cut_at_the_ends_of_the_line() -> None:
    before = Event("checkpoint", at(-20), at(-10))
    into = Event("checkpoint", at(-5), at(3), EventDetail(cause="wal"))
    unfinished = Event("checkpoint", at(25), None)
    other = Event("autovacuum", at(5), at(6))
    line = told([10.0] * 32, before, into, unfinished, other).timeline
    assert line is not None
    spans = [(one.start_s, one.end_s, one.cause) for one in line.checkpoints]
    assert spans == [(-2.0, 3.0, "wal"), (25.0, 30.0, None)]


def test_a_checkpoint_writes_then_flushes_as_far_as_both_lie_on_the_line() -> None:
    said = EventDetail(write_s=4.0, sync_s=1.5, total_s=6.0)
    whole = Event("checkpoint", at(5), at(11), said)
    cut_off = Event("checkpoint", at(-9), at(-3), said)
    silent = Event("checkpoint", at(12), at(13), EventDetail(cause="time"))
    line = told([10.0] * 32, whole, cut_off, silent).timeline
    assert line is not None
    phases = {one.start_s: (one.written_s, one.flushed_s) for one in line.checkpoints}
    assert phases[5.0] == (9.0, 10.5)
    assert {phases[start] for start in phases if start != 5.0} == {(None, None)}


def test_no_checkpoint_event_is_known_only_by_the_counters() -> None:
    without = told([10.0] * 32)
    assert without.checkpoints is None
    assert without.checkpoint_cycle is not None
    assert without.checkpoint_cycle.verdict == "unknown"

    counters = {"checkpoints.timed": 0.0, "checkpoints.requested": 0.0}
    result = replace(RESULT, events=(), deltas=RESULT.deltas | counters)
    record = TrialRecord(1, 1, "s", "", TrialState.FINISHED, result=result)
    counted = trial_facts(record, {}, server_on_host=True)
    assert counted.checkpoints == 0
    assert counted.checkpoint_cycle is not None
    assert counted.checkpoint_cycle.verdict == "finding"


def test_a_trial_without_series_has_no_line() -> None:
    record = TrialRecord(1, 1, "s", "", TrialState.FINISHED, result=RESULT)
    facts = trial_facts(record, {}, server_on_host=True)
    assert facts.timeline is None
    assert facts.steadiness is not None
    assert facts.steadiness.verdict == "unknown"


def test_contradictory_client_times_are_told_not_raised() -> None:
    result = replace(RESULT, client=replace(RESULT.client, user_s=1e6))
    record = TrialRecord(1, 1, "s", "", TrialState.FINISHED, result=result)
    limit = trial_facts(record, {}, server_on_host=True).client_limit
    assert limit is not None
    assert limit.verdict == "unknown"
    assert "possible at most" in limit.fact


def test_what_else_the_log_tells_stands_on_the_same_axis() -> None:
    waited = Event("lock_wait", at(-5), at(3), EventDetail(lock="ShareLock on transaction 7"))
    file = Event("temporary_file", at(4), at(4), EventDetail(file_bytes=3 << 20))
    late = Event("error", at(31), at(31), EventDetail(text="ERROR: no"))
    vacuumed = Event(
        "autovacuum", at(5), at(6), EventDetail(table="t", wal_bytes=1 << 20, cpu_s=0.5)
    )
    held_back = Event("autovacuum", at(8), at(9), EventDetail(table="v", unremovable_rows=1200))
    cost = EventDetail(
        table="u", buffers_hit=1012, buffers_read=3, buffers_dirtied=0, wal_records=1,
        wal_bytes=229,
    )  # fmt: skip
    analyzed = Event("autoanalyze", at(6), at(6) + 250_000_000, cost)
    restarted = Event(
        "restartpoint", at(7), at(9), EventDetail(cause="time", buffers=12, distance_bytes=16 << 20)
    )
    line = told([10.0] * 32, waited, file, vacuumed, analyzed, restarted, held_back, late).timeline
    assert line is not None
    assert [(one.kind, one.start_s, one.text) for one in line.marks] == [
        ("lock_wait", -2.0, "ShareLock on transaction 7"),
        ("temporary_file", 4.0, "3.00 MiB"),
        ("autovacuum", 5.0, "t, 1.00 MiB of WAL, 0.50 s of CPU, 1.00 s in all"),
        (
            "autoanalyze",
            6.0,
            "u, 1,012 pages found, 3 read, 0 dirtied, 229 B of WAL in 1 record, 0.25 s in all",
        ),
        ("restartpoint", 7.0, "time, 12 buffers written, 16.0 MiB of WAL since the one before"),
        (
            "autovacuum",
            8.0,
            "v, 1,200 dead rows not removable, as a transaction may still see them, 1.00 s in all",
        ),
    ]
    assert line.marks[0].end_s == 3.0


def test_of_very_many_events_the_longest_are_shown_and_the_others_counted() -> None:
    short = [Event("error", at(1 + n / 100), at(1 + n / 100)) for n in range(MARKS_MAX + 50)]
    line = told([10.0] * 32, *short, Event("autovacuum", at(8), at(20))).timeline
    assert line is not None
    assert len(line.marks) == MARKS_MAX
    assert line.marks_left_out == 51
    assert [one.kind for one in line.marks].count("autovacuum") == 1
    assert [one.start_s for one in line.marks] == sorted(one.start_s for one in line.marks)
