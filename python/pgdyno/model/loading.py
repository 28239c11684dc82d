"""What a load or an export needs, and what it did: records of the words of the core."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.record_json import JsonObject
from pgdyno.model.units import bytes_text
from pgdyno.model.wording import plural

COPY = "copy"
"""The phase of a load in which rows are copied."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that was open and was decided."""

    name: str
    value: str
    why: str


@dataclass(frozen=True, slots=True)
class PhaseSeconds:
    """A part of a load; parts overlap."""

    name: str
    seconds: float  # from the start of its first step to the end of its last
    session_seconds: float | None = None  # of all sessions together; None: not counted


@dataclass(frozen=True, slots=True)
class TableLoaded:
    """A table that was filled."""

    name: str
    rows: int  # as the server counted them
    bytes: int  # of COPY data


@dataclass(frozen=True, slots=True)
class LoadReport:
    """What a load did. What a load from files does not count is None."""

    version: int  # of this shape
    workload: JsonObject  # its specification, resolved
    seconds: float  # from connecting to the record of the load
    phases: tuple[PhaseSeconds, ...]
    rows: int
    bytes: int  # of COPY data
    c_load: dict[str, int] | None = None  # constants that a run of TPC-C must respect
    tables: tuple[TableLoaded, ...] = ()
    server_version: str | None = None
    loaded_at_unix_s: int | None = None  # the time that loaded rows carry
    steps_done_before: int = 0  # by a load that was interrupted
    units_before: int = 0  # warehouses or branches that were there and stayed
    disk_bytes: int | None = None  # tables with their indexes, as the server says; 0 of a part
    client_cpu_seconds: float | None = None
    choices: tuple[Choice, ...] = ()


@dataclass(frozen=True, slots=True)
class HostLoaded:
    """What one of several hosts copied."""

    name: str
    report: LoadReport  # of its part

    @property
    def copy_s(self) -> float:
        """From its first step to the end of its last, in seconds; 0: it had none."""
        return next((one.seconds for one in self.report.phases if one.name == COPY), 0.0)

    @property
    def shown(self) -> str:
        """For people, e.g. `ssh://b: 1,000 rows, 12.0 MiB in 0.42 s`."""
        rows, size = plural(self.report.rows, "row", thousands=True), bytes_text(self.report.bytes)
        return f"{self.name}: {rows}, {size} in {self.copy_s:.2f} s"


@dataclass(frozen=True, slots=True)
class LoadEstimate:
    """What a load would need."""

    version: int
    unit: str  # what units are called: "warehouses", "scale"
    units: int  # there are to be
    units_before: int  # there are
    rows: int
    disk_bytes: int  # tables and indexes that come
    sort_bytes: int  # temporary files while indexes are built
    wal_bytes: int
    seconds: float | None  # None where no temporary table can be made
    connections: int
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file that an export wrote."""

    name: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What an export did."""

    version: int
    workload: JsonObject
    files: tuple[ExportedFile, ...]
    seconds: float
