"""What stages of several run files, and results of other tools, show beside each other.

Base units throughout, as in `analysis.facts`; what was not measured is None.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.analysis.answer_facts import TailFacts
from pgdyno.analysis.cycle_facts import CycleFacts
from pgdyno.analysis.facts import Comparison, Percentiles, Spread
from pgdyno.analysis.session_facts import SessionShare
from pgdyno.imports.beside import Beside
from pgdyno.model.imported import Condition, Imported
from pgdyno.stats.between_runs import SessionNoise

SCHEMA = "pgdyno.compare/1"

How = Literal["paired", "unpaired"]
"""By rounds of one run that took turns, or by runs of different sessions."""

Group = Literal["load", "measurement", "host", "build", "settings", "pgdyno", "plans"]
"""What a difference is of. Where load or measurement differ, nothing is judged; plans of statements
are what a server made of all the others."""


@dataclass(frozen=True, slots=True)
class Side:
    """One stage of one run, as it stands beside others."""

    label: str  # as it was asked for, e.g. "runs/a.sqlite:tuned"
    run: str  # its ident
    started_ns: int
    plan: str
    stage: str
    metric: str  # NOPM, or tps
    rung: str
    rounds: int  # finished ones
    doubts: tuple[str, ...]  # grave ones of its report: what a verdict on it stands under
    failed: int  # trials that ended without numbers that may be used
    requests_failed: int  # of finished trials
    margin: float
    confidence: float
    throughput: Spread | None
    tpm_total: Spread | None
    orders_ended: Spread | None  # New-Orders a minute however they ended; None: another workload
    latency: tuple[Percentiles, ...]  # of the merged histograms of all rounds
    tail: TailFacts | None  # to the first stage of its load, by rounds; None: not compared
    per_transaction: dict[str, Spread]  # names and units: `analysis.efficiency`
    wal: dict[str, float]  # counters of WAL by transaction, median of rounds; none: not counted
    wal_kinds: dict[str, float]  # bytes of a commit by kind of record; none: not read
    waits: tuple[SessionShare, ...] | None  # by class; None: sessions were not sampled
    functions: dict[str, float] | None  # CPU µs of a transaction by name; None: no profile
    cycles: CycleFacts | None
    aspects: dict[Group, dict[str, str]]  # what it may differ from others in
    conditions: dict[str, Condition]  # the same of its load as of results of other tools


@dataclass(frozen=True, slots=True)
class Differs:
    """Something that two sides do not share."""

    group: Group
    what: str
    values: tuple[str, str]  # of the base, of the other; "not told" where one has none


@dataclass(frozen=True, slots=True)
class Against:
    """A side against the base."""

    place: int  # of the side, from 1; the base is 0
    how: How
    comparison: Comparison
    hint: str | None  # how to find out what is not known
    differences: tuple[Differs, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Sides that belong together: the first is the base of the others."""

    sides: tuple[Side, ...]
    against: tuple[Against, ...]
    noise: SessionNoise | None  # between sessions; None: not needed, or not known


@dataclass(frozen=True, slots=True)
class Gate:
    """A stage against the one that it is held against."""

    stage: str
    run: str
    against: str
    limit: float
    ratio: float
    low: float
    high: float
    fails: bool | None  # None: the interval holds the limit
    least_found: float | None  # a drop to this ratio is found with 80 % chance, about; None: paired


@dataclass(frozen=True, slots=True)
class Compared:
    """All that a comparison says."""

    schema: str
    rows: tuple[Row, ...]
    imported: tuple[Imported, ...]  # of other tools: no interval, no verdict
    ratios: tuple[Beside, ...]  # to imported results; none unless somebody asked
    known_runs: int  # that the noise between sessions was looked for in
    gates: tuple[Gate, ...] = ()  # none unless a limit was named
