"""What storage can do, and what it claims: the floor that no setting of PostgreSQL goes below.

Times are ns, sizes bytes, rates per second, shares of one. What a system does not tell is None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.wording import plural

Pattern = Literal["random read", "random write", "sequential read", "sequential write"]
PATTERNS: tuple[Pattern, ...] = (
    "random read", "random write", "sequential read", "sequential write"
)  # fmt: skip
COMPARED: tuple[Pattern, ...] = ("random read", "random write")
"""Under the heaviest load, by which several paths are compared."""
MANY_AT_ONCE: tuple[Pattern, ...] = (*COMPARED, "sequential read")
"""Of which every round tells how many times as fast many requests or processes are as one."""
IN_SEQUENCE: tuple[Pattern, ...] = ("sequential read", "sequential write")
PAUSES_US = (60, 200, 800)  # before a flush: storage and its host may have gone to sleep
ROUNDS, QUICK_ROUNDS = 5, 3  # of probes in turn, where nothing else is asked for
ROUNDS_MIN, ROUNDS_MAX = 2, 100  # one tells nothing of the spread
SECONDS_MAX = 3600  # of a window
TRANSACTION_US_MAX = 10_000_000
NO_DISK_KNOWN = "the disk below is not known, so nobody notices another pgdyno that measures on it"
BLOCK_BYTES = 8192  # of PostgreSQL's pages, and of everything measured here


@dataclass(frozen=True, slots=True)
class Latency:
    """Percentiles of one window, from submission to completion."""

    p50_ns: int
    p95_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    mean_ns: float
    n: int


@dataclass(frozen=True, slots=True)
class DeviceClaims:
    """What the kernel says of the storage below a folder."""

    file_system: str
    mount: str
    options: str
    device: str  # of the file system, e.g. "/dev/nvme0n1p2"
    block_device: str | None = None  # its whole disk, e.g. "nvme0n1"; None: there is none
    model: str | None = None
    rotational: bool | None = None
    write_cache: str | None = None  # "write back": volatile, flushes are sent; "write through"
    fua: bool | None = None  # single writes can bypass the cache
    atomic_write_bytes: int | None = None  # written whole or not at all; 0: not promised
    logical_block_bytes: int | None = None
    physical_block_bytes: int | None = None
    scheduler: str | None = None
    backing_file: str | None = None  # of a loop device
    backed_by_memory: bool = False  # where that file is kept, or that of a loop device below it
    disks: tuple[str, ...] = ()  # whole disks below everything; (): there is none, or not known
    cached_file: bool = False  # of a loop device: its file is used through the page cache

    @property
    def in_memory(self) -> bool:
        """Whether its files are kept in memory."""
        return self.file_system in IN_MEMORY or self.backed_by_memory

    @property
    def place(self) -> str:
        """Where it lies, e.g. `on ext4, loop0, a file on vda`."""
        device = self.block_device or self.device
        if self.backed_by_memory:
            return f"on {self.file_system}, {device}, a file in memory: no disk is measured"
        if self.in_memory:
            return f"in memory ({self.file_system}): no disk is measured"
        if not self.disks:
            return f"on {self.file_system}, {device}: {NO_DISK_KNOWN}"
        if self.backing_file:
            cached = " through the page cache" if self.cached_file else ""
            return f"on {self.file_system}, {device}, a file on {', '.join(self.disks)}{cached}"
        below = f" on {', '.join(self.disks)}" if self.disks != (device,) else ""
        return f"on {self.file_system}, {device}{below}"


@dataclass(frozen=True, slots=True)
class SyncRate:
    """One line of pg_test_fsync."""

    test: str  # one-write | two-writes | open-sync-sizes | descriptor | unsynced
    method: str  # in its words, e.g. "fdatasync"
    per_s: float | None  # None: the platform or the file system does not have it

    @property
    def ns(self) -> float | None:
        """Time of one operation."""
        return 1e9 / self.per_s if self.per_s else None


def line_of(lines: Sequence[SyncRate], test: str, method: str) -> SyncRate | None:
    """The line of a method; None: it is not there, or has no number."""
    found = (one for one in lines if (one.test, one.method) == (test, method))
    return next((one for one in found if one.per_s), None)


@dataclass(frozen=True, slots=True)
class Clock:
    """What pg_test_timing says of reading the clock."""

    loop_ns: float  # of one reading, the loop around it included
    below_us: tuple[tuple[float, int], ...]  # histogram: upper bound of a reading's time, count


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One window of fio: a pattern under a load."""

    pattern: Pattern
    depth: int  # requests that each job keeps under way
    jobs: int
    per_s: float
    bytes_per_s: float
    latency: Latency
    cpu_share: float  # of one CPU, that each job used

    @property
    def outstanding(self) -> int:
        """Requests under way in all."""
        return self.depth * self.jobs


class Load(NamedTuple):
    """What a window of fio asks for."""

    pattern: Pattern
    depth: int  # requests that each job keeps under way
    jobs: int

    @property
    def said(self) -> str:
        """What it is, e.g. `random read, 16 under way` or `..., 16 under way in each of 4 jobs`."""
        each = f" in each of {plural(self.jobs, 'job')}" if self.jobs > 1 else ""
        return f"{self.pattern}, {self.depth} under way{each}"


@dataclass(frozen=True, slots=True)
class Commits:
    """Small sequential writes, each followed by fdatasync, as one process writes WAL."""

    per_s: float
    flush: Latency  # of the fdatasync alone
    write_mean_ns: float
    cpu_ns: float  # of the process, for each
    flush_quantiles: tuple[tuple[float, float], ...]  # share of the flushes, ns: least to longest

    @property
    def ns(self) -> float:
        """Mean time of a write and its flush."""
        return self.write_mean_ns + self.flush.mean_ns

    @property
    def pause_ns(self) -> float:
        """Mean time from the end of a flush to the next write."""
        return max(0.0, 1e9 / self.per_s - self.ns)


@dataclass(frozen=True, slots=True)
class UnderCheckpoint:
    """The same, alone and while random writes go on as fast as they can."""

    alone: Commits
    under: Commits
    writes: GridPoint  # the checkpoint's


@dataclass(frozen=True, slots=True)
class Prepared:
    """The file that everything is measured on."""

    size_bytes: int
    memory_bytes: int
    direct: bool  # the page cache is bypassed
    bytes_per_s: float  # while it was written in full

    @property
    def beyond_memory(self) -> bool:
        """Whether the file does not fit into memory."""
        return self.size_bytes > self.memory_bytes


@dataclass(frozen=True, slots=True)
class Floor:
    """All that was learned of one path."""

    path: str
    device_number: int  # of the file system; paths of the same share it
    claims: DeviceClaims
    prepared: Prepared
    syncs: tuple[SyncRate, ...]
    grid: tuple[GridPoint, ...]
    # Up to version 0.1 commits were measured once on each path, and not in rounds.
    mixed: UnderCheckpoint | None = None
    rested: tuple[Commits, ...] = ()  # alone, after each of PAUSES_US

    def sync(self, test: str, method: str) -> SyncRate | None:
        """One line of pg_test_fsync; None: it is not there, or has no number."""
        return line_of(self.syncs, test, method)


@dataclass(frozen=True, slots=True)
class PathRound:
    """What the probes of one round found on one path, each in a window of its own."""

    path: str
    fdatasync_per_s: float  # pg_test_fsync: one page, written and flushed over and over
    mixed: UnderCheckpoint
    rested: tuple[Commits, ...]  # alone, after each of PAUSES_US
    # Random, under the heaviest load of the grid; None: of an earlier pgdyno, or it has but one.
    reads: GridPoint | None = None
    writes: GridPoint | None = None
    again: tuple[GridPoint, ...] = ()  # what else of `Wish.repeated` was measured

    def at(self, load: Load) -> GridPoint | None:
        """The window of a load; None: there was none."""
        found = (one for one in (self.reads, self.writes, *self.again) if one is not None)
        return next((one for one in found if (one.pattern, one.depth, one.jobs) == load), None)


@dataclass(frozen=True, slots=True)
class ProbeRound:
    """One round: every probe in turn on every path, so that what drifts meets all of them."""

    started_ns: int
    paths: tuple[PathRound, ...]  # in the order in which they were probed
    others_cpus: float | None = None  # busy with other programs meanwhile; None: not known

    def of(self, path: str) -> PathRound:
        """The round of a path; a missing one is a bug."""
        return next(one for one in self.paths if one.path == path)


@dataclass(frozen=True, slots=True)
class Share:
    """One path while several are read at once."""

    path: str
    alone_per_s: float
    together_per_s: float


@dataclass(frozen=True, slots=True)
class Together:
    """Random reads on paths of different file systems, at once."""

    depth: int
    jobs: int  # on each path
    shares: tuple[Share, ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """What is to be measured, and how long."""

    paths: tuple[str, ...]
    size_bytes: int  # of the file on each path
    seconds: int  # of each window and of each test
    depths: tuple[int, ...]
    jobs: tuple[int, ...]
    quick: bool = False
    transaction_us: int | None = None  # CPU time of one, to predict rates with
    # Of probes in turn. None: as many as pgdyno takes by itself; in files up to version 0.1: none.
    rounds: int | None = None

    def heaviest(self, pattern: Pattern) -> Load:
        """The heaviest load of the grid."""
        return Load(pattern, max(self.depths), max(self.jobs))

    def one_each(self, pattern: Pattern) -> Load:
        """What that is compared with: one request at a time; in sequence, by one process."""
        depth = max(self.depths) if pattern in IN_SEQUENCE else 1
        return Load(pattern, depth, 1)

    @property
    def repeated(self) -> tuple[Load, ...]:
        """Loads that are measured in every round, for their spread: what advice rests on."""
        found = [self.heaviest(pattern) for pattern in COMPARED if len(self.paths) > 1]
        for pattern in MANY_AT_ONCE:
            if (most := self.heaviest(pattern)) != (one := self.one_each(pattern)):
                found += [most, one]
        return tuple(dict.fromkeys(found))

    @classmethod
    def of(
        cls,
        *paths: str | Path,
        quick: bool = False,
        size_bytes: int | None = None,
        seconds: int | None = None,
        depths: Sequence[int] = (),
        jobs: Sequence[int] = (),
        rounds: int | None = None,
        transaction_us: int | None = None,
    ) -> Wish:
        """What is to be measured on these folders; what is not said is as in `USUAL` or `QUICK`.

        Args:
            paths: Folders.
            quick: A first look: short windows, a small grid.
            size_bytes: Of the file on each path.
            seconds: Of each window.
            depths: Requests that a job has under way.
            jobs: That run at once.
            rounds: In which flushes and commits are probed on every path in turn.
            transaction_us: CPU time of one of your transactions, to predict their rates with.
        """
        usual = QUICK if quick else USUAL
        return cls(
            tuple(str(Path(path).absolute()) for path in paths),
            usual.size_bytes if size_bytes is None else size_bytes,
            usual.seconds if seconds is None else seconds,
            tuple(sorted({*(depths or usual.depths)})),
            tuple(sorted({*(jobs or usual.jobs)})),
            quick,
            transaction_us,
            rounds,
        )


USUAL = Wish((), 4 << 30, 5, (1, 4, 16, 64), (1, 4))
"""How long and deep storage is measured, where nothing else is asked for."""
QUICK = Wish((), 256 << 20, 1, USUAL.depths, (1,), quick=True)
"""The same for a first look."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What one call of `pgdyno storage` learned; rounds and floors are added as they end."""

    ident: str
    started_ns: int
    pgdyno: str
    programs: dict[str, str]  # versions: PostgreSQL's, fio's
    cpus: int
    wish: Wish
    clock: Clock
    floors: tuple[Floor, ...] = ()
    together: Together | None = None
    rounds: tuple[ProbeRound, ...] = ()
    ended: str | None = (
        None  # why before it was whole, a clause; None: it is, goes on or was killed
    )

    def rounds_of(self, path: str) -> tuple[PathRound, ...]:
        """The rounds of a path, as they were measured."""
        return tuple(one.of(path) for one in self.rounds)

    @property
    def is_whole(self) -> bool:
        """Whether nothing is left to be measured."""
        if len(self.floors) < len(self.wish.paths) or len(self.rounds) < (self.wish.rounds or 0):
            return False
        return self.together is not None or len({one.device_number for one in self.floors}) == 1
