"""What the server's own views told of the windows, stages side by side.

In every row stages stand in the order of the plan; None: nothing was read there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LevelUnit = Literal["1", "1/s", "s", "B"]
About = Literal["sessions", "replication"]


@dataclass(frozen=True, slots=True)
class IoUse:
    """What processes of one type did to one kind of object, for one reason: pg_stat_io.

    Names are those of the view; what they never do has none.
    """

    per_s: Mapping[str, float]  # reads, writes, extends, fsyncs, evictions, reuses, hits, …
    bytes_per_s: Mapping[str, float]  # of reads, writes, extends
    mean_s: Mapping[str, float]  # time of one of these; none where the server takes no times


@dataclass(frozen=True, slots=True)
class IoRow:
    """A row of pg_stat_io."""

    process: str  # e.g. "client backend"
    object: str  # e.g. "relation"
    context: str  # e.g. "normal"
    stages: tuple[IoUse | None, ...]


@dataclass(frozen=True, slots=True)
class SlruUse:
    """Pages of a cache of transaction states, a second."""

    hits_per_s: float
    reads_per_s: float
    writes_per_s: float


@dataclass(frozen=True, slots=True)
class SlruRow:
    """A cache of pg_stat_slru, named as 17 does."""

    cache: str
    stages: tuple[SlruUse | None, ...]


@dataclass(frozen=True, slots=True)
class BufferUse:
    """What the buffer cache held of a relation; means of windows."""

    begin: float  # buffers
    end: float
    share: float  # at the end, of all buffers that were read
    dirty: float  # at the end
    usage: float | None  # mean usage count at the end; None: it had no buffer


@dataclass(frozen=True, slots=True)
class BufferRow:
    """A relation in the buffer cache."""

    relation: str
    kind: str  # table, index, elsewhere (of other databases), unused
    stages: tuple[BufferUse | None, ...]


@dataclass(frozen=True, slots=True)
class IndexUse:
    """What became of an index in the windows of a stage; means of its trials."""

    scans_per_s: float
    rows_per_s: float  # entries that scans returned
    bytes: float  # at the end
    grown_bytes: float  # in a window
    fetched_per_s: float  # rows of the table, by plain index scans


@dataclass(frozen=True, slots=True)
class IndexRow:
    """An index."""

    index: str
    table: str
    stages: tuple[IndexUse | None, ...]

    @property
    def unused(self) -> bool:
        """Whether no scan used it in any window that was looked at."""
        return not any(use.scans_per_s for use in self.stages if use is not None)


@dataclass(frozen=True, slots=True)
class SlotUse:
    """A replication slot at the end of a window; means of windows."""

    status: str  # what it was in the last window, e.g. "reserved, active"
    retained_bytes: float | None  # of WAL that it keeps; None: it keeps none yet
    grown_bytes: float | None  # in a window
    xmin_age: float | None  # of the oldest rows that it keeps; None: it keeps none


@dataclass(frozen=True, slots=True)
class SlotRow:
    """A replication slot."""

    slot: str
    type: str
    stages: tuple[SlotUse | None, ...]


@dataclass(frozen=True, slots=True)
class StandbyUse:
    """A standby at the end of a window; means of windows. None: it did not say, or idled."""

    status: str  # in the last window, e.g. "streaming, async"
    write_lag_s: float | None
    flush_lag_s: float | None
    replay_lag_s: float | None
    flush_behind_bytes: float | None
    replay_behind_bytes: float | None


@dataclass(frozen=True, slots=True)
class StandbyRow:
    """A standby, by its application_name."""

    standby: str
    stages: tuple[StandbyUse | None, ...]


@dataclass(frozen=True, slots=True)
class Level:
    """A rate, or a gauge: its mean over the windows of a stage."""

    mean: float
    most: float | None  # of a gauge, in any sample; None: a rate


@dataclass(frozen=True, slots=True)
class LevelRow:
    """Something that a view tells of sessions and transactions, or of replication."""

    about: About
    what: str
    unit: LevelUnit
    stages: tuple[Level | None, ...]


@dataclass(frozen=True, slots=True)
class ProgressUse:
    """How long a command was seen to run, all windows of a stage together."""

    seconds: float  # of commands: two that run for a second are two
    parts: tuple[tuple[str, str, float], ...]  # relation, phase and seconds, the longest first
    furthest: float | None  # share that all of them together were done at most; None: not told


@dataclass(frozen=True, slots=True)
class ProgressRow:
    """A command of pg_stat_progress_*."""

    command: str
    stages: tuple[ProgressUse | None, ...]


@dataclass(frozen=True, slots=True)
class AioRow:
    """Reads or writes that were under way at once: pg_aios."""

    operation: str
    state: str
    target: str
    stages: tuple[float | None, ...]  # of them at a moment, on average


@dataclass(frozen=True, slots=True)
class FreezeUse:
    """How many transactions ago the oldest row may have been frozen, at the end of the windows."""

    age: float  # the greatest
    max_age: float | None  # at which autovacuum freezes whatever else it is told; None: not told


@dataclass(frozen=True, slots=True)
class FreezeRow:
    """A table, or all driven databases."""

    table: str  # empty: the databases
    stages: tuple[FreezeUse | None, ...]


@dataclass(frozen=True, slots=True)
class ServerViews:
    """All of them; a view that nobody read, or that told nothing, has no rows."""

    io: tuple[IoRow, ...] = ()
    slru: tuple[SlruRow, ...] = ()
    buffers: tuple[BufferRow, ...] = ()
    indexes: tuple[IndexRow, ...] = ()
    levels: tuple[LevelRow, ...] = ()
    slots: tuple[SlotRow, ...] = ()
    standbys: tuple[StandbyRow, ...] = ()
    progress: tuple[ProgressRow, ...] = ()
    aio: tuple[AioRow, ...] = ()
    freeze: tuple[FreezeRow, ...] = ()
    read: tuple[str, ...] = ()  # of these views those that were read, with rows or without
