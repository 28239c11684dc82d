"""What a workload is, told by the core without a server: `Described` of its contract."""

from __future__ import annotations

from dataclasses import dataclass, field

from pgdyno.model.record_json import JsonObject
from pgdyno.model.workload import Schema


@dataclass(frozen=True, slots=True)
class NamedSql:
    """SQL with a name."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class PreparedSql:
    """A statement that sessions prepare; run files of earlier formats tell no parameters."""

    name: str
    sql: str
    parameters: tuple[str, ...] = ()  # their types by the names of SQL; unknown: inferred


@dataclass(frozen=True, slots=True)
class LoadedTable:
    """A table that is loaded."""

    name: str  # without schema
    rows: int  # after the load, exactly
    ddl: str  # CREATE TABLE


@dataclass(frozen=True, slots=True)
class ConditionSql:
    """A condition of consistency; what a check of it found is a `Condition`."""

    number: int  # of TPC-C: of clause 3.3.2
    title: str
    sql: str  # returns the rows that violate it


@dataclass(frozen=True, slots=True)
class LoadCheck:
    """A number that a query returns between the load and the first transaction."""

    name: str  # what is counted
    sql: str
    expected: int


@dataclass(frozen=True, slots=True)
class WitnessQuery:
    """How the rows that committed requests of a kind left are found again."""

    kind: str
    sql: str  # four columns of type bigint, the key of a row; $1: since, in us since 1970


@dataclass(frozen=True, slots=True)
class WrittenTables:
    """The tables whose rows a kind of transaction changes, as far as its statements name them."""

    kind: str
    tables: tuple[str, ...]  # without schema, ascending


@dataclass(frozen=True, slots=True)
class Deviation:
    """A difference from the text that a workload follows."""

    what: str
    why: str
    clause: str  # of TPC-C 5.11, or "pgbench"


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """Fewest and most of a transaction, BEGIN and COMMIT included."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class CsvFile:
    """A file of an export."""

    name: str
    table: str | None  # None: the schema has none for its rows
    columns: str  # in the file's order, with commas
    null: str  # how NULL is written
    bytes: int  # estimated


@dataclass(frozen=True, slots=True)
class CsvFiles:
    """The files of an export, and the SQL that a load from them needs."""

    files: tuple[CsvFile, ...]  # the largest first
    before: tuple[str, ...]  # before the tables are created
    after: tuple[str, ...]  # when the rows are there


@dataclass(frozen=True, slots=True)
class Remembering:
    """SQL by which a load from files remembers what it made."""

    in_the_way: str  # returns what stands where it would create: what, oid
    before: tuple[str, ...]  # after the tables were created
    after: tuple[str, ...]  # after indexes and references were added


@dataclass(frozen=True, slots=True)
class RunConstants:
    """Constants C of the three NURand functions of a run (clause 2.1.6.1)."""

    c_last: int
    c_id: int
    ol_i_id: int


@dataclass(frozen=True, slots=True)
class TpccDescription:
    """What no other workload has."""

    schema: Schema
    procedures: tuple[NamedSql, ...]  # that face `procedure` calls; none for others
    round_trips: dict[str, dict[str, RoundTrips]]  # by face and kind
    load_table: NamedSql  # that remembers a load: CREATE TABLE
    csv: CsvFiles
    made: Remembering
    c_load: dict[str, int]  # constants of the rows
    c_run: RunConstants


@dataclass(frozen=True, slots=True)
class Description:
    """A workload; run files of earlier formats tell less of it."""

    name: str  # its kind
    version: int  # raised whenever rows, requests or statements change
    kinds: tuple[str, ...] = ()  # of transactions
    mix: dict[str, float] = field(default_factory=dict)  # kind -> share; they sum up to 1
    statements: tuple[PreparedSql, ...] = ()  # what is prepared
    tables: tuple[LoadedTable, ...] = ()
    indexes: tuple[str, ...] = ()  # CREATE INDEX
    conditions: tuple[ConditionSql, ...] = ()  # hold after the load and after any run
    witnesses: tuple[WitnessQuery, ...] = ()  # kinds that leave nothing are missing
    writes: tuple[WrittenTables, ...] = ()  # kinds that only read are missing
    load_checks: tuple[LoadCheck, ...] = ()  # hold right after the load
    deviations: tuple[Deviation, ...] = ()
    disk_bytes_estimate: int = 0  # tables with their indexes after the load
    spec: JsonObject = field(default_factory=dict)  # resolved: it says every key
    tpcc: TpccDescription | None = None


@dataclass(frozen=True, slots=True)
class StageDescription:
    """What a stage drives otherwise than its plan as a whole; None: as the plan."""

    face: str
    deviations: tuple[Deviation, ...] | None = None
    mix: dict[str, float] | None = None
    conditions: tuple[ConditionSql, ...] | None = None
