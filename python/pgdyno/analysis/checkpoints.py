"""What checkpoints of the windows wrote, by stage and cause, as far as the server's log tells it.

A checkpoint counts where any part of it lies in a window. What it wrote is known when it has ended,
of the whole of it, also where that began before the window or ended after.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.timeline_facts import Checkpoint

_NO_CAUSE = "not told"


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure of several checkpoints."""

    mean: float
    most: float
    total: float


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """Checkpoints of a stage that had one cause, in all its finished windows together."""

    stage: str
    cause: str  # as the server says it, e.g. "time", "wal", "immediate force wait"
    count: int
    ended: int  # of these, those of which it is known what they wrote
    buffers: Measure | None  # None: no line tells it
    distance_bytes: Measure | None  # of WAL since the checkpoint before
    write_s: Measure | None
    sync_s: Measure | None
    longest_s: Measure | None  # flush of one file
    wal_added: Measure | None  # segments, as the next two
    wal_removed: Measure | None
    wal_recycled: Measure | None


def checkpoints(facts: Facts) -> tuple[CheckpointRow, ...]:
    """Stage by stage; within one, the cause that most checkpoints had first."""
    return tuple(row for stage in facts.stages for row in _of_stage(facts, stage.name))


def _of_stage(facts: Facts, stage: str) -> Iterator[CheckpointRow]:
    timelines = [
        trial.timeline
        for trial in facts.trials
        if trial.stage == stage and trial.state == "finished" and trial.timeline is not None
    ]
    met = [
        one for timeline in timelines for one in timeline.checkpoints
        if one.end_s > 0 and one.start_s < timeline.window_s
    ]  # fmt: skip
    by_cause: dict[str, list[Checkpoint]] = {}
    for one in met:
        by_cause.setdefault(one.cause or _NO_CAUSE, []).append(one)
    for cause, found in sorted(by_cause.items(), key=lambda item: (-len(item[1]), item[0])):
        yield _row(stage, cause, found)


def _row(stage: str, cause: str, found: Sequence[Checkpoint]) -> CheckpointRow:
    told = [one.detail for one in found if one.detail.buffers is not None]  # its last line tells it

    def measure(name: str) -> Measure | None:
        return _measure(map(attrgetter(name), told))

    return CheckpointRow(
        stage, cause, len(found), len(told), measure("buffers"), measure("distance_bytes"),
        measure("write_s"), measure("sync_s"), measure("longest_s"), measure("wal_added"),
        measure("wal_removed"), measure("wal_recycled"),
    )  # fmt: skip


def _measure(values: Iterable[float | None]) -> Measure | None:
    """Of those that tell it; None: none does."""
    known = [one for one in values if one is not None]
    return Measure(sum(known) / len(known), max(known), sum(known)) if known else None
