"""What the driver measured, read from its JSON into records (`crates/drive/src/result.rs`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter

from pgdyno.model.cycle import Followed
from pgdyno.model.run import (
    AuditLine,
    Client,
    Digest,
    Gap,
    KindResult,
    PartResult,
    PgbenchSummary,
    Series,
    StepResult,
)

_MINUTE_S = 60.0


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
    errors: tuple[dict[str, Any], ...]
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
    untold: int = 0

    @property
    def transactions(self) -> int:
        """Transactions that came to their end in the window, rollbacks included."""
        return sum(kind.window.succeeded + kind.window.rolled_back for kind in self.kinds)

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


def parse_result(raw: dict[str, Any]) -> Driven:
    """The worker's result as records; the shape stands in `crates/drive/src/result.rs`."""
    start_ns, end_ns = raw["window_unix_ns"]
    parts = [part | {"kinds": _kinds(part["kinds"])} for part in raw.get("parts", ())]
    steps = [step | {"kinds": _kinds(step["kinds"])} for step in raw.get("steps", ())]
    return Driven(
        outcome=raw["outcome"],
        error=raw["error"],
        window_ns=(start_ns, end_ns),
        window_s=raw["window_s"],
        kinds=_read(tuple[KindResult, ...], _kinds(raw["kinds"])),
        client=_read(Client, raw["client"]),
        audit=_read(tuple[AuditLine, ...], raw["audit"]),
        errors=tuple(raw["errors"]),
        reconnects=raw["reconnects"],
        statements_per_transaction=raw["statements_per_transaction"],
        round_trips_per_transaction=raw["round_trips_per_transaction"],
        series=tuple(_series(raw["seconds"])),
        gaps=_read(tuple[Gap, ...], raw.get("gaps", ())),
        parts=_read(tuple[PartResult, ...], parts),
        steps=_read(tuple[StepResult, ...], steps),
        late=raw.get("late", ""),
        late_ns=raw.get("late_ns", {}),
        stream_digest=_read(Digest | None, raw.get("stream_digest")),
        drained_s=raw["drained_s"],
        given_up_s=raw["given_up_s"],
    )


def _kinds(raw: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the core calls a name is a kind here, as in the counts of a second."""
    return [
        {("kind" if key == "name" else key): value for key, value in kind.items()} for kind in raw
    ]


def _read(kind: Any, raw: Any) -> Any:  # noqa: ANN401  any record
    return TypeAdapter(kind).validate_python(raw)


_RATES = ("rolled_back", "failed", "retries", "due", "skipped")


def _series(seconds: dict[str, Any]) -> list[Series]:
    columns = {f"driver.committed.{kind}": n for kind, n in seconds["committed"].items()}
    columns |= {f"driver.{name}": seconds[name] for name in _RATES if name in seconds}
    result = [
        Series(name, "1/s", "rate", _begins(seconds, counts), np.array(counts, dtype=np.float64))
        for name, counts in columns.items()
    ]
    if (factor := seconds.get("factor")) and any(one != 1 for one in factor):
        at = _begins(seconds, factor)
        result.append(Series("driver.factor", "1", "gauge", at, np.array(factor, dtype=np.float64)))
    return result


def _begins(seconds: dict[str, Any], column: list[float]) -> npt.NDArray[np.int64]:
    """A value belongs to the second that begins at its time."""
    steps = np.arange(len(column), dtype=np.int64) * 1_000_000_000
    return np.asarray(seconds["start_unix_ns"] + steps, dtype=np.int64)
