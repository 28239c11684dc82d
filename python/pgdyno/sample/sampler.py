"""What a sampler is: named columns with a unit, and a function that reads them once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from collections.abc import Iterable

import psycopg

Kind = Literal["counter", "gauge"]
Row = dict[str, float]


@dataclass(frozen=True, slots=True)
class Column:
    """One series: a counter grows, a gauge is a level."""

    name: str
    unit: str
    kind: Kind = "counter"


@dataclass(frozen=True, slots=True)
class Sampler:
    """Reads some columns at once.

    `take` returns a value for every column; a column that this kernel or server does not have is
    not in `columns`.
    """

    name: str
    columns: tuple[Column, ...]
    take: Callable[[], Row]
    interval_s: float = 1.0
    telemetry: str = "default"
    budget_us: float = 1000


@dataclass(frozen=True, slots=True)
class Label:
    name: str


@dataclass(frozen=True, slots=True)
class Tally:
    name: str
    dimensions: tuple[str, ...]
    take: Callable[[], Iterable[tuple[str, ...]]]
    interval_s: float = 0.1
    telemetry: str = "default"
    budget_us: float = 1000


@dataclass(frozen=True, slots=True)
class Snapshot:
    name: str
    columns: tuple[Column | Label, ...]
    take: Callable[[], list[dict[str, Any]]]
    telemetry: str = "default"
    budget_us: float = 1000


@dataclass(frozen=True, slots=True)
class Missing:
    name: str
    reason: str
    remedy: str = ""


One = Sampler | Tally | Snapshot | Missing


@dataclass(frozen=True, slots=True)
class Subject:
    """What may be read while a load is driven; without anything, this host alone."""

    session: psycopg.Connection[Any] | None = None  # in autocommit mode, for samplers alone
    databases: Sequence[str] = ()  # those that are driven
    postmaster_pid: int | None = None  # of a server of ours
    data_folder: Path | None = None  # of a server of ours
    ours: bool = False
    described: Any = None


Found = Sampler | Tally | Snapshot | Missing | Sequence[Sampler | Tally | Snapshot | Missing] | None
