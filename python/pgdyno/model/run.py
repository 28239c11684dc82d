"""What a run file holds: the records that the steps write and the report reads.

Times are ns since the Unix epoch unless a name says otherwise; counts are plain integers; bytes,
seconds and shares are base units, scaled only when printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from pydantic import AliasChoices, BeforeValidator, Field

from pgdyno.model.calibration import Ceiling
from pgdyno.model.client import Client
from pgdyno.model.cycle import Followed
from pgdyno.model.description import Description, StageDescription
from pgdyno.model.durability import Durability
from pgdyno.model.event_detail import EventDetail
from pgdyno.model.fixture_shape import FixtureShape
from pgdyno.model.fleet import FleetResult
from pgdyno.model.loading import LoadReport
from pgdyno.model.manifest import HostManifest, Installation
from pgdyno.model.plan import Plan, Telemetry
from pgdyno.model.server_result import ServerResult
from pgdyno.model.wal import WindowWal


class TrialState(StrEnum):
    """How far a trial came."""

    PLANNED = "planned"
    RUNNING = "running"
    FINISHED = "finished"
    INVALID = "invalid"  # measured, but its numbers must not be used: see reason
    DEGRADED = "degraded"  # measured with the hosts that were left: compared with nothing
    FAILED = "failed"  # no numbers: see reason

    @property
    def text(self) -> str:
        """The same of a run that has ended: what was running then was broken off."""
        return "broken off" if self is TrialState.RUNNING else str(self)


@dataclass(frozen=True, slots=True)
class Counts:
    """Outcomes of a kind of transaction.

    Always: due = succeeded + rolled_back + failed + skipped + unfinished. `unknown` is the part of
    `failed` whose commit may have happened. Of the window's `unfinished`, `drained` were answered
    in the drain and `unanswered` had no answer when it ended; `stuck` is the part of those that
    were sent before the window ended, so that the server was silent all through the drain.
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
    drained: int | None = None  # None: not told, as before format 3; the unfinished have no time
    unanswered: int = 0
    stuck: int = 0

    @property
    def retries(self) -> int:
        """Of both reasons."""
        return self.retries_40001 + self.retries_40p01

    @property
    def ended(self) -> int:
        """Transactions that came to their end, rollbacks included."""
        return self.succeeded + self.rolled_back

    @property
    def timed(self) -> int:
        """Of the window: requests that have a response time."""
        return self.ended + (self.drained or 0) + self.unanswered


@dataclass(frozen=True, slots=True)
class StatementResult:
    """Round trips of one statement; several in one are named by what they carry."""

    name: str
    count: int
    histogram: str  # base64 of V2 deflate, ns
    ns: dict[str, int]  # as `KindResult.response_ns`


@dataclass(frozen=True, slots=True)
class KindResult:
    """One kind of transaction in one window.

    Its times are of all requests that somebody waited for within the window: due before its end,
    not ended before its begin. Those that never had an answer are among them with the time until
    they were given up. From the least of these on, `exact_below`, values are lower bounds, also
    quantiles; the mean is one then, too. The key is absent where all is exact.
    """

    kind: str  # e.g. "new_order"
    window: Counts
    run: Counts  # warm-up and drain included
    response: str  # histogram, base64 of V2 deflate, ns from the due time
    service: str  # the same, from when a connection took it up
    response_ns: dict[str, int]  # p50 p90 p95 p99 p999 max mean, perhaps exact_below
    service_ns: dict[str, int]
    queue: str = ""  # histogram, from the due time to when a connection took it up
    queue_ns: dict[str, int] = field(default_factory=dict)
    keying_mean_s: float | None = None  # of those that were answered
    think_mean_s: float | None = None  # that followed the same
    statements: tuple[StatementResult, ...] = ()


@dataclass(frozen=True, slots=True)
class Gap:
    """A time without connections, within the run."""

    start_unix_ns: int
    end_unix_ns: int | None  # None: until the end
    connections: int  # how many were gone


@dataclass(frozen=True, slots=True)
class PartResult:
    """One of several databases that were driven at once, on one server or on several."""

    name: str
    kinds: tuple[KindResult, ...]


@dataclass(frozen=True, slots=True)
class StepKind:
    """One kind of transaction in one step."""

    kind: str
    counts: Counts  # of those that became due in the step: their outcomes in the window
    response: str  # histogram, as above
    response_ns: dict[str, int]


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of the window, as far as it was measured."""

    unix_ns: tuple[int, int]  # begin and end
    seconds: float
    factor: tuple[float, float]  # of the rate or of the active terminals: at begin and end
    ended: int  # transactions that came to their end while it lasted
    kinds: tuple[StepKind, ...]


@dataclass(frozen=True, slots=True)
class Digest:
    """What was asked for, in one number: equal where two runs performed the same requests."""

    requests: int
    sum: str  # of their hashes, hexadecimal


@dataclass(frozen=True, slots=True)
class Series:
    """A column of samples. A counter grows; a gauge is a level; a rate is per second already."""

    name: str  # e.g. "driver.committed.new_order", "wal.bytes", "cpu.user_s"
    unit: str
    kind: str  # counter | gauge | rate
    unix_ns: npt.NDArray[np.int64]  # (samples,)
    values: npt.NDArray[np.float64]  # (samples,)


@dataclass(frozen=True, slots=True)
class TallySeries:
    """How often each key was met, second by second: samples of sessions, by what they waited for.

    A key that was met `n` times in a second with `m` ticks was there `n / m` times on average. A
    second without ticks was not looked at; one with ticks and without keys held none.
    """

    name: str  # e.g. "sessions"
    dimensions: tuple[str, ...]  # what a key tells, in its order
    keys: tuple[tuple[str, ...], ...]  # all that were met, each once
    seconds: npt.NDArray[np.int64]  # (n,) s since the Unix epoch
    key: npt.NDArray[np.int64]  # (n,) place in `keys`
    counts: npt.NDArray[np.int64]  # (n,) how often it was met in that second
    tick_seconds: npt.NDArray[np.int64]  # (m,) seconds with ticks, ascending
    ticks: npt.NDArray[np.int64]  # (m,) how often was looked in them


Cell: TypeAlias = str | int | float | bool | None
"""What a snapshot's row holds in a column."""


@dataclass(frozen=True, slots=True)
class SnapshotColumn:
    """A column of a snapshot: labels together name a row, counters and gauges are measured."""

    name: str
    unit: str  # empty: of a label
    kind: Literal["label", "counter", "gauge"]


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """A table as it was read at an end of the window."""

    name: str
    at: Literal["begin", "end"]
    unix_ns: int  # when it was read
    columns: tuple[SnapshotColumn, ...]
    rows: tuple[dict[str, Cell], ...]  # each has all columns


@dataclass(frozen=True, slots=True)
class Missing:
    """What could not be read here: a right, a kernel's feature or an extension is not there."""

    name: str  # of what would have been read, in words
    reason: str  # a fact, in lower case and without full stop
    remedy: str = ""  # e.g. "GRANT pg_monitor TO bench;"; empty: there is none


@dataclass(frozen=True, slots=True)
class SamplerCost:
    """How a sampler fared in a trial."""

    name: str
    kind: Literal["series", "tally", "snapshot"]
    takes: int  # times it was read
    lost: int  # times it was due, and others were still being read, or it could not be
    cpu_s: float  # of the thread that reads them; what the server spends to answer is not in it
    budget_us: float  # of CPU, that one take may cost
    failure: str | None = None  # why it stopped
    gap_s: float = 0.0  # that it told nothing, though it was asked
    gap_reason: str = ""  # of the last failure among these times
    seconds: float | None = None  # from the first sample to the last; None: those of the report


@dataclass(frozen=True, slots=True)
class TelemetryReport:
    """What was sampled in a trial, what that cost, and what could not be."""

    set: Telemetry
    seconds: float  # from the first sample to the last
    cpu_s: float  # of the thread that reads the samplers, its own work included
    samplers: tuple[SamplerCost, ...]
    missing: tuple[Missing, ...]


@dataclass(frozen=True, slots=True)
class Event:
    """Something with a begin and an end on the time axis, e.g. a checkpoint."""

    kind: str  # checkpoint | autovacuum | ...
    start_ns: int
    end_ns: int | None  # None: still going on when the trial ended
    detail: EventDetail = field(default_factory=EventDetail)


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
class PgbenchStatement:
    """One command of a script of pgbench, over its whole run; it tells no more than the mean."""

    kind: str  # of transaction
    text: str  # its first line
    mean_s: float
    failures: int
    retries: int

    @property
    def mean_ns(self) -> float:
        """The same in the unit of all other latencies."""
        return self.mean_s * 1e9


@dataclass(frozen=True, slots=True)
class PgbenchSummary:
    """What pgbench itself printed of its whole run, the warm-up included; None: not printed."""

    version: str
    transactions: int
    failed: int
    retries: int
    tps: float  # without the time of connecting
    latency_mean_s: float | None
    latency_sd_s: float | None
    connect_s: float | None
    statements: tuple[PgbenchStatement, ...]


@dataclass(frozen=True, slots=True)
class Effective:
    """A setting as read back from the running server."""

    name: str
    value: str  # in the server's words, with unit, as SHOW prints it
    origin: str  # kind of origin: initdb, target, profile, plan, override
    detail: str


@dataclass(frozen=True, slots=True)
class Recovery:
    """What a server did after it was killed under load, until it answered again."""

    ready_s: float  # from its start to its readiness, by its own log
    redo_s: float  # of these: replaying WAL; 0 where there was none to replay
    replayed_bytes: int  # of WAL


@dataclass(frozen=True, slots=True)
class Failures:
    """Requests that failed alike."""

    sqlstate: str  # or "connection lost", "protocol", "answer"
    count: int
    example: str  # text of one


@dataclass(frozen=True, slots=True)
class TrialResult:
    """Everything measured in one trial."""

    window_ns: tuple[int, int]
    window_s: float
    nopm: float | None  # committed New-Orders a minute; None: the workload is not TPC-C
    tpm_total: float  # all transactions that came to their end a minute, rollbacks included
    kinds: tuple[KindResult, ...]
    client: Client
    deltas: dict[str, float]  # growth over the window of series that count: wal.bytes, cpu.user_s
    settings: tuple[Effective, ...]
    audit: tuple[AuditLine, ...]
    conditions: tuple[Condition, ...]
    events: tuple[Event, ...]
    errors: tuple[Failures, ...]
    reconnects: int
    statements_per_transaction: float | None  # None: pgbench does not tell
    round_trips_per_transaction: float | None
    phases_s: dict[str, float]  # restore, start, drive, check, ...; and the window, of drive
    notes: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    parts: tuple[PartResult, ...] = ()
    steps: tuple[StepResult, ...] = ()
    late: str = ""  # histogram: how late the schedule noticed due times that it waited for
    late_ns: dict[str, int] = field(default_factory=dict)
    stream_digest: Digest | None = None  # None: not told
    server: str = ""  # what the server called itself: version(); empty: not asked
    engine: str = "pgdyno"  # who drove: pgdyno, or pgbench with its version
    pgbench: PgbenchSummary | None = None
    recovery: Recovery | None = None  # None: the server was not killed, or its log does not tell
    followed: Followed | None = None  # None: the window had no eye on checkpoints
    durability: Durability | None = None  # as read back before it was driven; None: not read
    drained_s: float = 0.0  # from the window's end to the last end of what was carried out of it
    given_up_s: float | None = None  # from there until requests without an answer were given up
    # Requests due in the window that pgbench's log does not hold, about; once called `untold`.
    unlogged: Annotated[int, Field(validation_alias=AliasChoices("unlogged", "untold"))] = 0
    telemetry: TelemetryReport | None = None  # None: not told, as before format 7
    wal: WindowWal | None = None  # None: not read; a note says why where it was tried
    fleet: FleetResult | None = None  # None: the load came from one process
    servers: tuple[ServerResult, ...] = ()  # none: one server had all of the workload

    @property
    def tps(self) -> float:
        """Committed transactions a second."""
        return sum(kind.window.succeeded for kind in self.kinds) / self.window_s

    @property
    def checkpoints(self) -> tuple[Event, ...] | None:
        """Those that the server's log tells of; None: whether there were any is not known."""
        found = tuple(one for one in self.events if one.kind == "checkpoint")
        # No event may also mean that the server's log could not be read; its counters tell.
        counted = [self.deltas.get(f"checkpoints.{cause}") for cause in ("timed", "requested")]
        return found if found or all(count == 0 for count in counted) else None

    @property
    def follows_cycles(self) -> bool:
        """Whether the window was to be made of whole checkpoint cycles."""
        return self.followed is not None and self.followed.cycles is not None

    @property
    def headline(self) -> str:
        """Name of the metric that stages are compared by: `NOPM` or `tps`."""
        return "tps" if self.nopm is None else "NOPM"

    @property
    def throughput(self) -> float:
        """The metric that stages are compared by."""
        return self.tps if self.nopm is None else self.nopm


@dataclass(frozen=True, slots=True)
class TrialRecord:
    """A trial of the run file.

    A round that broke may be measured again as a whole, and a trial that lost a host of its load
    is, at once; what was measured first stays in the file under a number of its own, which tells
    what took its place.
    """

    number: int
    round: int
    stage: str
    ident: str
    state: TrialState
    reason: str | None = None
    started_ns: int | None = None
    ended_ns: int | None = None
    result: TrialResult | None = None
    attempt: int = 1  # which measurement of its round
    replaced_by: int | None = None  # number of the trial that took its place; None: it is used
    host_lost: bool = False  # the only reason: one of the hosts that its load came from was lost

    @property
    def failed(self) -> bool:
        """Whether it came to its end without numbers that may be used."""
        return self.state in (TrialState.FAILED, TrialState.INVALID)

    @property
    def counts_against_its_stage(self) -> bool:
        """Whether it failed, and not for what happened to a host of the load."""
        return self.failed and not self.host_lost


def _or_none(loaded: object) -> object:
    """Up to format 5 a fixture without rows of ours had an empty report."""
    return loaded or None


@dataclass(frozen=True, slots=True)
class Fixture:
    """A loaded database that trials share."""

    ident: str  # hash of only what shapes the data
    shape: FixtureShape
    data_bytes: int
    loaded: Annotated[LoadReport | None, BeforeValidator(_or_none)]  # None: no rows of ours
    conditions: tuple[Condition, ...]  # checked right after the load
    restore: str  # how trials get it: "reflink", "copy", "template database"
    reused: bool  # it was there before this run
    others: tuple[Fixture, ...] = ()  # of further servers that hold parts of the workload


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The head of a run file, written before the first action."""

    ident: str  # e.g. "20261121-224500-demo"
    started_ns: int
    pgdyno: str  # version, and commit where known
    command: str  # how to repeat it
    plan: Plan | None  # resolved; None: the experiment has none
    host: HostManifest
    build: Installation  # the target's own
    workload: Description | None  # of the plan as a whole; None: nothing was driven
    stages: dict[str, StageDescription] = field(default_factory=dict)  # what differs in each
    calibration: tuple[Ceiling, ...] = ()  # ceilings of this machine, measured before
    server: dict[str, str] = field(default_factory=dict)  # what one that is not ours says of itself
    experiment: str = "plan"  # a module of `api.experiments`; what it found stands beside the head
    host_ceilings: dict[str, tuple[Ceiling, ...]] = field(default_factory=dict)  # of a fleet
