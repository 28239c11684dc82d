"""What checkpoints wrote: by stage and cause, of those that reach into a window, as far as told."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.checkpoints import Measure, checkpoints
from pgdyno.analysis.facts import Facts
from pgdyno.analysis.timeline_facts import Checkpoint
from pgdyno.model.event_detail import EventDetail

WROTE = EventDetail(
    cause="wal", buffers=10, write_s=1.0, sync_s=0.1, total_s=1.2, longest_s=0.05,
    distance_bytes=100, wal_added=1, wal_removed=0, wal_recycled=4,
)  # fmt: skip


def told(facts: Facts, *found: Checkpoint, state: str = "finished") -> Facts:
    """The facts with these in the first trial, and none in any other."""
    trials = []
    for number, trial in enumerate(facts.trials):
        assert trial.timeline is not None
        timeline = replace(trial.timeline, checkpoints=found if number == 0 else ())
        trials.append(
            replace(trial, timeline=timeline, state=state if number == 0 else trial.state)
        )
    return replace(facts, trials=tuple(trials))


def at(start_s: float, end_s: float, detail: EventDetail = WROTE) -> Checkpoint:
    return Checkpoint(start_s, end_s, detail.cause, detail=detail)


def test_means_the_most_and_sums_are_of_those_that_have_ended(facts: Facts) -> None:
    more = replace(WROTE, buffers=30, longest_s=0.5, wal_recycled=None)
    unended = EventDetail(cause="wal")
    (row,) = checkpoints(told(facts, at(1, 2), at(5, 6, more), at(9, 30, unended)))

    assert (row.stage, row.cause, row.count, row.ended) == (facts.trials[0].stage, "wal", 3, 2)
    assert row.buffers == Measure(20.0, 30, 40)
    assert row.longest_s == Measure(0.275, 0.5, 0.55)
    assert row.wal_recycled == Measure(4.0, 4, 4), "of those that tell it"
    assert row.wal_added == Measure(1.0, 1, 2)


def test_causes_stand_apart_and_the_most_frequent_first(facts: Facts) -> None:
    by_time = replace(WROTE, cause="time")
    rows = checkpoints(told(facts, at(1, 2, by_time), at(3, 4), at(5, 6)))
    assert [(row.cause, row.count) for row in rows] == [("wal", 2), ("time", 1)]
    unnamed = checkpoints(told(facts, at(1, 2, replace(WROTE, cause=None))))
    assert [row.cause for row in unnamed] == ["not told"]


def test_what_lies_in_no_window_and_what_was_never_told_is_not_made_up(facts: Facts) -> None:
    timeline = facts.trials[0].timeline
    assert timeline is not None
    after = timeline.window_s
    assert checkpoints(told(facts, at(-5, 0), at(after, after + 1))) == ()
    assert checkpoints(told(facts, at(-5, 0.1), state="finished"))[0].count == 1
    assert checkpoints(told(facts, at(1, 2), state="invalid")) == ()
    (row,) = checkpoints(told(facts, at(1, 2, EventDetail(cause="time"))))
    assert (row.ended, row.buffers, row.sync_s) == (0, None, None)
