"""What the driver measured, read from its JSON into records (`crates/drive/src/result.rs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from pgdyno.core import require_written
from pgdyno.model.client import Client
from pgdyno.model.cycle import Followed
from pgdyno.model.fleet import FleetResult
from pgdyno.model.record_json import from_plain
from pgdyno.model.response_times import times_series
from pgdyno.model.run import (
    AuditLine,
    Digest,
    Failures,
    Gap,
    KindResult,
    PartResult,
    PgbenchSummary,
    Series,
    StepResult,
)

_MINUTE_S = 60.0
RESULT_VERSION = 3
"""Of the core's results: those that this reads."""


@dataclass(frozen=True, slots=True)
class Driven:
    """What the driver measured."""

    outcome: str  # complete | unanswered | stopped | gave_up
    error: str | None
    window_ns: tuple[int, int]
    window_s: float
    kinds: tuple[KindResult, ...]
    client: Client
    audit: tuple[AuditLine, ...]
    errors: tuple[Failures, ...]
    reconnects: int
    statements_per_transaction: float | None  # None: pgbench does not tell
    round_trips_per_transaction: float | None
    series: tuple[Series, ...]
    gaps: tuple[Gap, ...]
    parts: tuple[PartResult, ...]
    steps: tuple[StepResult, ...]
    late: str
    late_ns: dict[str, int]
    stream_digest: Digest | None
    engine: str = "pgdyno"  # who drove: pgdyno, or pgbench with its version
    pgbench: PgbenchSummary | None = None
    followed: Followed | None = None  # where checkpoints decided when the window ended
    drained_s: float = 0.0  # these three as `TrialResult` has them
    given_up_s: float | None = None
    unlogged: int = 0
    fleet: FleetResult | None = None  # None: one process drove

    @property
    def transactions(self) -> int:
        """Transactions that came to their end in the window, rollbacks included."""
        return sum(kind.window.ended for kind in self.kinds)

    @property
    def committed(self) -> int:
        """Transactions that were committed in the window."""
        return sum(kind.window.succeeded for kind in self.kinds)

    @property
    def tps(self) -> float:
        """Committed transactions a second."""
        return self.committed / self.window_s

    @property
    def nopm(self) -> float:
        """Committed New-Orders a minute; means something for TPC-C only."""
        orders = sum(kind.window.succeeded for kind in self.kinds if kind.kind == "new_order")
        return orders / self.window_s * _MINUTE_S

    @property
    def tpm_total(self) -> float:
        """All transactions that came to their end a minute, rollbacks included."""
        return self.transactions / self.window_s * _MINUTE_S


@dataclass(frozen=True, slots=True)
class Times:
    """Requests by how long they took, of all kinds, by the second in which they ended."""

    step_s: int  # seconds that each row holds: 1; beyond two hours 2, 4, 8 …
    edges_ns: tuple[int, ...]
    counts: tuple[tuple[int, ...], ...]  # by column, then by row; empty: nothing was met there


@dataclass(frozen=True, slots=True)
class Seconds:
    """Counts of each second since the warm-up began; the last second may be cut short."""

    start_unix_ns: int
    factor: tuple[float, ...]  # of the rate or of the active terminals; 1 without steps
    due: tuple[int, ...]
    skipped: tuple[int, ...]
    committed: dict[str, tuple[int, ...]]  # by kind
    rolled_back: tuple[int, ...]
    failed: tuple[int, ...]
    retries: tuple[int, ...]
    times: Times


@dataclass(frozen=True, slots=True)
class RunResult:
    """What the core says of a run, in its own words: `RunResult` of its contract."""

    version: int
    outcome: Literal["complete", "unanswered", "stopped", "gave_up"]
    error: str | None
    started_unix_ns: int
    started_steady_ns: int  # the same instant by the steady clock of who drove
    begun_late_ns: int
    window_unix_ns: tuple[int, int]
    window_s: float
    kinds: tuple[KindResult, ...]
    client: Client
    audit: tuple[AuditLine, ...]
    errors: tuple[Failures, ...]
    reconnects: int
    statements_per_transaction: float
    round_trips_per_transaction: float
    seconds: Seconds
    gaps: tuple[Gap, ...]
    parts: tuple[PartResult, ...]
    steps: tuple[StepResult, ...]
    late: str
    late_ns: dict[str, int]
    stream_digest: Digest | None
    drained_s: float
    given_up_s: float | None


def parse_result(raw: Mapping[str, object]) -> Driven:
    """The driver's result as records.

    Raises:
        DriveError: It is of another version, because core and Python were built apart.
    """
    require_written("the driver's result", raw["version"], RESULT_VERSION)
    result = from_plain(RunResult, raw)
    return Driven(
        outcome=result.outcome,
        error=result.error,
        window_ns=result.window_unix_ns,
        window_s=result.window_s,
        kinds=result.kinds,
        client=result.client,
        audit=result.audit,
        errors=result.errors,
        reconnects=result.reconnects,
        statements_per_transaction=result.statements_per_transaction,
        round_trips_per_transaction=result.round_trips_per_transaction,
        series=tuple(_series(result.seconds)),
        gaps=result.gaps,
        parts=result.parts,
        steps=result.steps,
        late=result.late,
        late_ns=result.late_ns,
        stream_digest=result.stream_digest,
        drained_s=result.drained_s,
        given_up_s=result.given_up_s,
    )


_RATES = ("rolled_back", "failed", "retries", "due", "skipped")


def _series(seconds: Seconds) -> list[Series]:
    columns = {f"driver.committed.{kind}": n for kind, n in seconds.committed.items()}
    columns |= {f"driver.{name}": getattr(seconds, name) for name in _RATES}
    result = [
        Series(name, "1/s", "rate", _begins(seconds, counts), np.array(counts, dtype=np.float64))
        for name, counts in columns.items()
    ]
    if any(one != 1 for one in seconds.factor):
        at = _begins(seconds, seconds.factor)
        values = np.array(seconds.factor, dtype=np.float64)
        result.append(Series("driver.factor", "1", "gauge", at, values))
    times = seconds.times
    columns_of = [np.array(column, dtype=np.int64) for column in times.counts]
    return result + times_series(seconds.start_unix_ns, times.step_s, times.edges_ns, columns_of)


def _begins(seconds: Seconds, column: Sequence[float]) -> npt.NDArray[np.int64]:
    """A value belongs to the second that begins at its time."""
    steps = np.arange(len(column), dtype=np.int64) * 1_000_000_000
    return np.asarray(seconds.start_unix_ns + steps, dtype=np.int64)
