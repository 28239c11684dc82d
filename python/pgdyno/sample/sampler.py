"""What a sampler is: named columns with a unit, and a function that reads them once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

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


@dataclass(frozen=True, slots=True)
class Subject:
    """What may be read while a load is driven; without anything, this host alone."""

    session: psycopg.Connection[Any] | None = None  # in autocommit mode, for samplers alone
    databases: Sequence[str] = ()  # those that are driven
    postmaster_pid: int | None = None  # of a server of ours
    data_folder: Path | None = None  # of a server of ours
