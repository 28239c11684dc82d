"""What a made-up run has over time besides its lines: events, checkpoints that tell, processes."""

from __future__ import annotations

from dataclasses import replace

from pgdyno.analysis.facts import Facts, TrialFacts
from pgdyno.analysis.process_line_facts import ProcessLine
from pgdyno.analysis.timeline_facts import Checkpoint, Mark, Timeline
from pgdyno.model.event_detail import EventDetail

_MARKS = (
    Mark("autovacuum", 2.0, 6.5, "tpcc.public.orders, 1,234 pages found, 12 read, 3 dirtied"),
    Mark("lock_wait", 9.0, 11.0, "ShareLock on transaction 4711"),
    Mark("temporary_file", 14.0, 14.0, "12.3 MiB"),
    Mark("error", 20.0, 20.0, "ERROR: deadlock detected"),
)
_WROTE = EventDetail(
    cause="wal", buffers=41_000, write_s=4.5, sync_s=0.75, total_s=5.5, longest_s=0.123,
    distance_bytes=555 << 20, wal_added=0, wal_removed=3, wal_recycled=33,
)  # fmt: skip
_FORCED = replace(_WROTE, cause="immediate force wait", buffers=7, longest_s=0.001)


def over_time(facts: Facts) -> Facts:
    """With events, what checkpoints wrote, a window that ended early, and who used the CPUs."""
    trials = tuple(
        replace(one, timeline=_eventful(one.timeline, early=number == 1)) if one.timeline else one
        for number, one in enumerate(facts.trials)
    )
    first = [next(one for one in trials if one.stage == stage.name) for stage in facts.stages]
    return replace(
        facts,
        trials=trials,
        process_lines=tuple(process_line(one) for one in first if one.timeline),
    )


def _eventful(timeline: Timeline, *, early: bool) -> Timeline:
    checkpoints = tuple(replace(one, detail=_WROTE) for one in timeline.checkpoints)
    forced = Checkpoint(1.0, 1.5, _FORCED.cause, detail=_FORCED)
    window_s = 0.8 * timeline.window_s if early else timeline.window_s
    return replace(
        timeline, marks=_MARKS, checkpoints=(forced, *checkpoints), window_s=window_s
    )  # fmt: skip


def process_line(trial: TrialFacts) -> ProcessLine:
    """CPUs of a server's processes in the seconds of a trial's line."""
    assert trial.timeline is not None
    second = trial.timeline.second
    roles = {"backend": 1.2, "checkpointer": 0.2, "wal_writer": 0.05, "telemetry": 0.02, "other": 0}
    return ProcessLine(
        trial.number, trial.stage, trial.timeline.step_s, second,
        {
            role: tuple(round(cpus * (1 + n % 5 / 10), 3) for n in range(len(second)))
            for role, cpus in roles.items()
        },
    )  # fmt: skip
