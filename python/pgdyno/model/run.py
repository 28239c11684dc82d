"""What a run file holds: the records that the steps write and the report reads.

Times are ns since the Unix epoch unless a name says otherwise; counts are plain integers; bytes,
seconds and shares are base units, scaled only when printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt


class TrialState(StrEnum):
    """How far a trial came."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    INVALID = "invalid"  # measured, but its numbers must not be used: see reason
    FAILED = "failed"  # no numbers: see reason


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of a kind of transaction.

    Always: due = succeeded + rolled_back + failed + skipped + unfinished. `unknown` is the part of
    `failed` whose commit may have happened.
    """

    due: int = 0
    succeeded: int = 0
    rolled_back: int = 0
    failed: int = 0
    unknown: int = 0
    skipped: int = 0
    unfinished: int = 0
    retries_40001: int = 0
    retries_40p01: int = 0


@dataclass(frozen=True, slots=True)
class KindResult:
    """One kind of transaction in one window."""

    kind: str  # e.g. "new_order"
    window: Counts
    run: Counts  # warm-up and drain included
    response: str  # histogram, base64 of V2 deflate, ns from the due time
    service: str  # the same, from when a connection took it up
    response_ns: dict[str, int]  # p50 p90 p95 p99 p999 max mean
    service_ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class Series:
    """A column of samples. A counter grows; a gauge is a level; a rate is per second already."""

    name: str  # e.g. "driver.committed.new_order", "pg_stat_wal.wal_bytes", "cpu.user_s"
    unit: str
    kind: str  # counter | gauge | rate
    unix_ns: npt.NDArray[np.int64]  # (samples,)
    values: npt.NDArray[np.float64]  # (samples,)


@dataclass(frozen=True, slots=True)
class Event:
    """Something with a begin and an end on the time axis, e.g. a checkpoint."""

    kind: str  # checkpoint | autovacuum | ...
    start_ns: int
    end_ns: int | None  # None: still going on when the trial ended
    detail: dict[str, Any] = field(default_factory=dict)  # e.g. cause, buffers, write_s, sync_s


@dataclass(frozen=True, slots=True)
class AuditLine:
    """A measured property of the inputs against its permitted band."""

    name: str
    source: str
    measured: float
    n: int
    low: float
    high: float
    unit: str

    @property
    def ok(self) -> bool:
        """Whether the measured value lies in the band."""
        return self.low <= self.measured <= self.high


@dataclass(frozen=True, slots=True)
class Condition:
    """One consistency condition, as checked once."""

    number: int  # of clause 3.3.2
    title: str
    violations: int
    sample: str | None  # the first violating row, as text
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the database satisfies it."""
        return self.violations == 0


@dataclass(frozen=True, slots=True)
class Client:
    """What the driver itself cost in the window."""

    user_s: float
    system_s: float
    window_s: float
    cpus: int
    share_of_host: float
    voluntary_switches: int
    involuntary_switches: int
    run_queue_wait_s: float
    threads: int
    rss_max_bytes: int
    thread_cpu_s: tuple[float, ...] = ()  # of each driver thread
    thread_wait_s: tuple[float, ...] = ()  # runnable but not running, same order


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting as read back from the running server."""

    name: str
    value: str  # in the server's words, with unit, as SHOW prints it
    origin: str  # kind of origin: initdb, target, profile, plan, override
    detail: str


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Everything measured in one trial."""

    window_ns: tuple[int, int]
    window_s: float
    nopm: float  # committed New-Orders a minute
    tpm_total: float  # all transactions that came to their end a minute, rollbacks included
    kinds: tuple[KindResult, ...]
    client: Client
    deltas: dict[str, float]  # over the window: wal_bytes, wal_fpi, server_cpu_s, read_bytes, ...
    settings: tuple[Effective, ...]
    audit: tuple[AuditLine, ...]
    conditions: tuple[Condition, ...]
    events: tuple[Event, ...]
    errors: tuple[dict[str, Any], ...]  # sqlstate, count, example
    reconnects: int
    statements_per_transaction: float
    round_trips_per_transaction: float
    phases_s: dict[str, float]  # restore, start, prewarm, checkpoint, drive, check, stop: seconds
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial of the run file."""

    number: int
    round: int
    stage: str
    ident: str
    state: TrialState
    reason: str | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    result: TrialResult | None = None


@dataclass(frozen=True, slots=True)
class Fixture:
    """A loaded database that trials share."""

    ident: str  # hash of only what shapes the data
    shape: dict[str, Any]  # workload, warehouses, seed, schema, major, block size, checksums
    data_bytes: int
    loaded: dict[str, Any]  # the loader's report: phases, rows, bytes, seconds
    conditions: tuple[Condition, ...]  # checked right after the load
    restore: str  # how trials get it: "reflink", "copy", "template database"
    reused: bool  # it was there before this run


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The head of a run file, written before the first action."""

    ident: str  # e.g. "20261121-224500-demo"
    started_ns: int
    pgdyno: str  # version, and commit where known
    command: str  # how to repeat it
    plan: dict[str, Any]  # the resolved plan (model.plan.Plan) as JSON
    host: dict[str, Any]  # kernel, CPU model, memory, file system, mounts, clock source, ...
    build: dict[str, Any]  # version, bindir, configure flags, compiler
    workload: dict[str, Any]  # `describe` of the core: kinds, mix, deviations, conditions
