"""A trial over time: its throughput, what happened in its window; and where the run's time went."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno.model.event_detail import EventDetail


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A checkpoint on the time axis of its trial; an open end is the end of what is known.

    It writes buffers, then flushes files, then ends: its log line says how long both took, and the
    phases are put one behind the other from its start.
    """

    start_s: float
    end_s: float
    cause: str | None
    written_s: float | None = None  # when its buffers were written; None: not known, or cut off
    flushed_s: float | None = None  # when its files were flushed; None: the same
    detail: EventDetail = field(default_factory=EventDetail)  # all that the log tells of it


@dataclass(frozen=True, slots=True)
class Mark:
    """Something else that the server's log or its statistics tell, on the same axis."""

    # autovacuum | autoanalyze | restartpoint | recovery | lock_wait | temporary_file | error, of
    # the log; analyze | vacuum, of statistics
    kind: str
    start_s: float
    end_s: float
    text: str  # what is known of it


@dataclass(frozen=True, slots=True)
class Timeline:
    """Throughput of a trial, seconds since the window began (warm-up is negative)."""

    window_s: float
    step_s: float  # width of one point
    second: tuple[float, ...]  # middle of each point
    tpm: tuple[float, ...]  # tpmTotal, as far as the driver's series tell rollbacks
    checkpoints: tuple[Checkpoint, ...]
    outages: tuple[tuple[float, float], ...] = ()  # begin and end of times without connections
    marks: tuple[Mark, ...] = ()  # by start; the longest, where there are very many
    marks_left_out: int = 0
    least: tuple[float, ...] = ()  # tpmTotal of the slowest second of each point, and
    greatest: tuple[float, ...] = ()  # of the fastest; none where a point is one second


@dataclass(frozen=True, slots=True)
class Extremes:
    """A line of which means are stacked, by itself: what stood out in each part of it."""

    second: tuple[float, ...]  # since the window began
    values: tuple[float, ...]  # the least and the greatest of each part, as they came


@dataclass(frozen=True, slots=True)
class Phases:
    """Where the time went."""

    measuring_s: float  # warm-up, window and drain
    other_s: dict[str, float]  # by phase, all trials
    between_s: float  # inside the run, outside of every phase: loading, bookkeeping
    stopped_s: float  # from the begin of a trial that was interrupted to that of the next one
    total_s: float  # from the start of the run to the end of the last trial
