"""What stages on several storages saw of their disks, and advice on storage, as frozen records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.floor_figures import Span

Answer = Literal["try", "not known", "not for this load"]


@dataclass(frozen=True, slots=True)
class Advice:
    """Something to try, since measurements speak for it."""

    where: str  # the path, or paths; of a plan, the stage, or stages
    what: str  # to do, as a command
    because: str  # the figures that it rests on
    settings: dict[str, str]  # of PostgreSQL; {}: it is not done by settings
    limits: str  # what it does not do, and what it takes
    plan: str | None  # that measures it on a server; None: there is none


@dataclass(frozen=True, slots=True)
class NotKnown:
    """What might be advised, if measurements told enough."""

    where: str  # as of advice
    what: str  # to do, as a command
    because: str  # the figures, and what would make it known
    plan: str | None = None  # that measures it on a server; None: there is none


@dataclass(frozen=True, slots=True)
class NotForThisLoad:
    """What is not advised: the load of a stage does not wait for what it would make faster."""

    where: str  # the stage
    what: str  # not to do, as a command
    because: str  # the figures


@dataclass(frozen=True, slots=True)
class StepAnswers:
    """What the windows say of one thing that may be done, disk by disk."""

    by: str  # settings, or a command, that do it
    answers: tuple[Answer, ...]  # in the order of `StorageInUse.places`


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
    wait_write: Span | None
    wait_flush: Span | None
    waiting: Span | None  # sessions that wait for reads, on average over a window


@dataclass(frozen=True, slots=True)
class StorageInUse:
    """Stages whose data lie on different storages, and what follows for a server on them."""

    disks: tuple[DiskInUse, ...]  # of each stage, in the order of the plan
    folders: tuple[str, ...]  # that the plan names, each once; none that is kept in memory
    own: bool  # pgdyno's own folder is among the disks
    steps: tuple[StepAnswers, ...]  # (): no stage lies on a disk
    advice: tuple[Advice, ...]
    not_known: tuple[NotKnown, ...]  # what might follow
    not_for_load: tuple[NotForThisLoad, ...]

    @property
    def places(self) -> tuple[str | None, ...]:
        """Folders that were measured and are kept on disks, pgdyno's own, None, first."""
        return (None, *self.folders) if self.own else self.folders
