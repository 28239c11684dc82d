"""The kinds of sampler: series of numbers, tallies of what was met, snapshots of tables.

Each says what it reads, how often, in which set of telemetry it is, and what one read may cost. The
`recorder` reads them; they know nothing of each other, nor of when they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

import psycopg

from pgdyno.model.description import Description
from pgdyno.model.plan import Telemetry
from pgdyno.model.run import Cell, Missing
from pgdyno.model.wait import WaitOf
from pgdyno.sample.positions import Positions

__all__ = ["Cell", "Column", "Found", "Label", "Missing", "Replica", "Row", "Sampler", "Snapshot",
           "SnapshotRow", "Subject", "Tally", "Telemetry"]  # fmt: skip

Kind = Literal["counter", "gauge"]
Set = Literal["default", "full"]
Row = dict[str, float]
"""A take of a sampler: by column; those that have no value now are left out."""
SnapshotRow: TypeAlias = Mapping[str, Cell]
"""A row of a snapshot: by column, labels too."""


@dataclass(frozen=True, slots=True)
class Column:
    """One series: a counter grows, a gauge is a level. The third kind, distributions: `Tally`."""

    name: str
    unit: str
    kind: Kind = "counter"


@dataclass(frozen=True, slots=True)
class Label:
    """A column of a snapshot that, with the other labels, names a row."""

    name: str


@dataclass(frozen=True, slots=True)
class Sampler:
    """Reads some columns at once.

    A column that this kernel or server does not have is not in `columns`. A take may leave columns
    out, e.g. those of a device that is gone: there is no sample of them then.
    """

    name: str
    columns: tuple[Column, ...]
    take: Callable[[], Row]
    interval_s: float = 1.0
    telemetry: Set = "default"
    budget_us: float = 1000.0  # of CPU, that one take may cost


@dataclass(frozen=True, slots=True)
class Tally:
    """A distribution: looks which keys are there at a moment, e.g. what each session waits for.

    How often each was met is added up by whole seconds. The moments keep their mean distance, and
    fall anywhere within it: looking in step with the load would be biased.
    """

    name: str
    dimensions: tuple[str, ...]
    take: Callable[[], Iterable[tuple[str, ...]]]  # one key for each that is there, of one length
    interval_s: float = 0.1
    telemetry: Set = "default"
    budget_us: float = 1000.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A table that is read when the window begins and when it has ended, and never within it."""

    name: str
    columns: tuple[Column | Label, ...]
    take: Callable[[], Sequence[SnapshotRow]]  # with all columns
    telemetry: Set = "default"
    budget_us: float = 20_000.0


Found: TypeAlias = (
    Sampler | Tally | Snapshot | Missing | Sequence[Sampler | Tally | Snapshot | Missing] | None
)
"""What a module's `sampler(subject)` returns; None: there is nothing to read of such a subject."""


def _none() -> Sequence[int]:
    return ()


@dataclass(frozen=True, slots=True)
class Replica:
    """A server that answers reads of the load, and the one that it follows."""

    session: psycopg.Connection[Any]  # on it, for samplers alone
    primary: psycopg.Connection[Any]
    positions: Positions = field(default_factory=Positions)  # of the primary, as seen so far


@dataclass(frozen=True, slots=True)
class Subject:
    """What may be read while a load is driven; without anything, this host alone."""

    session: psycopg.Connection[Any] | None = None  # in autocommit mode, for samplers alone
    databases: Sequence[str] = ()  # those that are driven
    postmaster_pid: int | None = None  # of a server on this host whose processes we may see
    data_folder: Path | None = None  # of a server of ours
    ours: bool = False  # the server is one of ours, on this host
    major: int | None = None  # version of the server
    own_pids: Collection[int] = ()  # backends of sessions of ours that look on, as they come
    # Of the processes of this host that make the load, once they run; None: it comes from others.
    driver_pids: Callable[[], Sequence[int]] | None = field(default=_none)
    log: Path | None = None  # the server's log
    telemetry: Telemetry = "default"
    described: Description | None = None  # the workload that is driven
    replica: Replica | None = None  # that answers reads, if one does
    pooler: psycopg.Connection[Any] | None = None  # its console, where the load goes through one
    pooler_pid: int | None = None
    wait_of: WaitOf | None = None  # by the catalogue of wait events; needed with a session
