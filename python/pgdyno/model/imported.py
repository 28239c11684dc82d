"""Results of other tools: what they told, in their own words, and what may be set beside it.

A kind of its own: no interval, no verdict. What a tool did not tell is unknown (None, or not in
`conditions`), never 0. `tpmC` and alike stand in `told` only; figures that have a meaning across
tools have the names in `COMPARABLE`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Condition: TypeAlias = str | float
"""What is known of a load: a number in its unit, or a word."""

COMPARABLE = {
    "nopm_committed": "New-Orders a minute that were committed",
    "nopm_ended": "New-Orders a minute however they ended",
    "tpm_all_ended": "transactions of all kinds a minute however they ended",
    "tps": "transactions a second that did not fail",
}
"""Figures that mean the same of any tool, and what they mean."""

CONDITIONS = {
    "warehouses": "warehouses", "scale": "scale factor", "clients": "clients",
    "threads": "threads", "duration_s": "duration, s", "asked_duration_s": "asked duration, s",
    "rampup_s": "ramp-up, s", "transaction_type": "transaction type", "query_mode": "query mode",
    "new_order_percent": "New-Orders in the mix, %", "payment_percent": "Payments in the mix, %",
    "other_percent": "least of the other kinds in the mix, %",
    "rate_limit_tps": "rate limit, tps",
    "reconnects": "connects for each transaction", "isolation": "isolation",
    "database": "database", "host": "host", "statement_form": "statements",
    "keying_and_thinking": "keying and think times", "instance": "instance of the tool",
    "run": "run", "repeats": "repeats of one configuration", "percentile": "percentile of latency",
}  # fmt: skip
"""What results may differ in, and what people call it."""

Outcome: TypeAlias = Literal["fires", "silent", "unknown"]


@dataclass(frozen=True, slots=True)
class Told:
    """A figure as the tool tells it, by the tool's own name."""

    metric: str
    value: float
    unit: str
    line: int  # of the file, from 1
    of: str | None = None  # a kind of transaction, a statement, an operation


@dataclass(frozen=True, slots=True)
class Comparable:
    """A figure of a meaning that tools share."""

    metric: str  # a key of `COMPARABLE`
    value: float
    how: str  # where it comes from: a metric that was told, or what was counted


@dataclass(frozen=True, slots=True)
class Span:
    """When it was measured."""

    begin_s: float  # since the epoch; by the clock of the tool's host
    end_s: float
    zone: Literal["UTC", "local"]  # local: of a host whose zone is not told
    resolution_s: float  # what a time may be off


@dataclass(frozen=True, slots=True)
class Latencies:
    """Counts of latencies, which merge; percentiles do not."""

    lower_us: tuple[float, ...]  # lower edge of each bucket, rising
    counts: tuple[int, ...]
    width: float  # of a bucket, as a share of its lower edge; 0: values are exact


@dataclass(frozen=True, slots=True)
class Warned:
    """What a check against a trap says of a result."""

    trap: str
    outcome: Outcome
    fact: str | None  # a sentence if it fires; what is missing if it is unknown


@dataclass(frozen=True, slots=True)
class Source:
    """Where a result was read."""

    file: str
    sha256: str  # of the whole file as it lay there
    size_bytes: int
    first_line: int
    last_line: int

    @property
    def place(self) -> str:
        """Where it begins, for a sentence."""
        return f"{self.file}, line {self.first_line}"


@dataclass(frozen=True, slots=True)
class Imported:
    """A result of another tool."""

    tool: str
    version: str | None  # as told
    form: str  # which of the tool's outputs it is
    source: Source
    told: tuple[Told, ...]
    comparable: tuple[Comparable, ...]
    conditions: dict[str, Condition]  # by keys of `CONDITIONS`
    failed: int | None  # transactions that ended in an error; None: not told
    span: Span | None
    latencies: Latencies | None
    counts: dict[str, int]  # what the importer counted of lines or rows, by a name
    missing: tuple[str, ...]  # what a whole output has and this one has not
    checks: tuple[Warned, ...] = ()

    @property
    def name(self) -> str:
        """Tool and version, as a reader knows them."""
        return f"{self.tool} {self.version}" if self.version else f"{self.tool}, version unknown"

    def value(self, metric: str) -> float | None:
        """A comparable figure; None if it is unknown."""
        return next((one.value for one in self.comparable if one.metric == metric), None)

    def said(self, metric: str, of: str | None = None) -> float | None:
        """A figure as told; None if it is unknown."""
        found = (one.value for one in self.told if one.metric == metric and one.of == of)
        return next(found, None)

    def told_nothing_but(self, begin: str) -> bool:
        """Whether all that was told has a name that begins so."""
        return all(one.metric.startswith(begin) for one in self.told)

    @property
    def unknown(self) -> tuple[str, ...]:
        """What a reader needs for a comparison and nobody told."""
        needed = {
            "number of failed transactions": self.failed is not None,
            "duration": "duration_s" in self.conditions,
            "number of clients": "clients" in self.conditions,
            "version": self.version is not None,
            "settings of the server": False,
            "host": "host" in self.conditions,
        }
        return tuple(name for name, known in needed.items() if not known)
