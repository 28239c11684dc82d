"""What stages on several storages saw of their disks, and advice on storage, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.floor_figures import Span


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to try, since measurements speak for it."""

    where: str  # the path, or paths; of a plan, the stage
    what: str  # to do, as a command
    because: str  # the figures that it rests on
    settings: dict[str, str]  # of PostgreSQL; {}: it is not done by settings
    limits: str  # what it does not do, and what it takes
    plan: str | None  # that measures it on a server; None: there is none


@dataclass(frozen=True, slots=True)
class NotKnown:
    """What might be advised, if measurements told enough."""

    where: str  # the path; of a plan, the stage
    what: str  # to do, as a command
    because: str  # the figures, and what would make it known


@dataclass(frozen=True, slots=True)
class DiskInUse:
    """The device below the data of a stage, as its load used it: medians and ends of the rounds.

    None: there is no such device, as for memory, or the kernel does not count it.
    """

    stage: str
    folder: str | None  # of the data; None: pgdyno's own
    first: str  # the stage that this one is compared with, or itself: both have one load
    reads_per_s: Span | None
    read_s: Span | None  # from when it was queued, on average over a window
    reading: Span | None  # reads under way, the same
    writes_per_s: Span | None
    write_s: Span | None
    flushes_per_s: Span | None
    flush_s: Span | None
    wait_read: Span | None  # share of sessions' active time that waits for it; None: not sampled
    wait_flush: Span | None
    waiting: Span | None  # sessions that wait for reads, on average over a window


@dataclass(frozen=True, slots=True)
class StorageInUse:
    """Stages whose data lie on different storages, and what follows for a server on them."""

    disks: tuple[DiskInUse, ...]  # of each stage, in the order of the plan
    folders: tuple[str, ...]  # that the plan names, each once; none that is kept in memory
    own: bool  # pgdyno's own folder is among the disks
    advice: tuple[Advice, ...]
    not_known: tuple[NotKnown, ...]  # what might follow
