"""What PostgreSQL counted between the ends of the windows: statements, tables, plans."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class StatementUse:
    """What a statement took in the windows of a stage, as pg_stat_statements counts it."""

    sessions: float  # that executed it, on average: seconds of execution in each second
    calls_per_s: float
    mean_s: float | None  # of one call; None: it was not called
    rows: float | None  # of one call
    read_blocks: float | None  # of one call, that were not in shared buffers; None: not counted
    wal_bytes: float | None  # of one call; None: not counted, before 13
    hit_blocks: float | None = None  # of one call, that were in shared buffers
    dirtied_blocks: float | None = None  # of one call
    written_blocks: float | None = None  # of one call, by the session itself
    temp_blocks: float | None = None  # of one call, read and written
    plan_s: float | None = None  # of one call; None: nothing was planned, or it is not counted
    io_s: float | None = None  # of one call, of its time; None: there was none, or it is not taken
    wal_records: float | None = None  # of one call; None: not counted, before 13
    wal_fpi: float | None = None  # full page images among them


@dataclass(frozen=True, slots=True)
class StatementRow:
    """A statement, stage by stage."""

    statement: str  # its name in the workload, else its text
    kind: str  # of the transaction that sends it; empty: several do, or it is not the workload's
    stages: tuple[StatementUse | None, ...]  # in the order of the plan; None: not counted there
    # Its place among all by calls, WAL, blocks read and temporary blocks, in the stage where it
    # comes first, as far as it is one of the first.
    leads: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TableUse:
    """What became of a table in the windows of a stage; means of its trials."""

    bytes: float  # with its indexes, at the end
    grown_bytes: float  # in a window
    changed_per_s: float  # rows that were inserted, updated or deleted
    hot_share: float | None  # of updates that changed no index; None: none was updated
    dead_rows: float  # at the end, as the server estimates them
    vacuums: float  # in a window, by hand or by autovacuum
    analyzes: float
    scanned_rows_per_s: float  # read by sequential scans
    freeze_age: float | None  # transactions since its oldest row may have been frozen, at the end
    live_rows: float | None = None  # at the end, as the server estimates them
    moved_per_s: float | None = None  # updates onto another page; None: not counted, before 16
    sequential_scans_per_s: float | None = None
    index_scans_per_s: float | None = None
    vacuum_s: float | None = None  # that vacuums took in a window; None: not taken, before 18
    analyze_s: float | None = None
    since_vacuum_s: float | None = None  # at the end, since the last one; None: there was none
    since_analyze_s: float | None = None
    inserted_since_vacuum: float | None = None  # rows, at the end; None: not counted, before 13
    modified_since_analyze: float | None = None  # rows, at the end


@dataclass(frozen=True, slots=True)
class TableRow:
    """A table with its indexes, stage by stage."""

    table: str
    stages: tuple[TableUse | None, ...]  # in the order of the plan; None: not looked at there


@dataclass(frozen=True, slots=True)
class PlanChange:
    """A statement whose generic plan was another one when the window had ended."""

    statement: str
    stage: str
    round: int
    before: str  # the plan's nodes in one line
    after: str


@dataclass(frozen=True, slots=True)
class PlanDifference:
    """A statement whose generic plan is not the same in all stages when their windows begin."""

    statement: str
    shapes: tuple[str | None, ...]  # in the order of the plan; None: not known, or not one there


@dataclass(frozen=True, slots=True)
class PlanByRound:
    """A statement whose generic plan is not the same in all rounds of one stage."""

    statement: str
    stage: str
    shapes: tuple[tuple[str, tuple[int, ...]], ...]  # each, and the rounds that began with it


@dataclass(frozen=True, slots=True)
class PlanEstimate:
    """What the planner expected of a plan, on average over the windows of a stage that had it."""

    begin_cost: float | None  # in the planner's own unit; None: it was not met at that end
    end_cost: float | None
    begin_rows: float | None
    end_rows: float | None


@dataclass(frozen=True, slots=True)
class PlanRow:
    """A generic plan of a statement, stage by stage."""

    statement: str
    kind: str  # of the transaction that sends it
    shape: str  # the plan's nodes in one line
    nodes: tuple[str, ...]  # each that has more to tell, with its conditions
    stages: tuple[PlanEstimate | None, ...]  # in the order of the plan; None: not met there


@dataclass(frozen=True, slots=True)
class Plans:
    """The plans of the workload's statements at both ends of the windows."""

    statements: int  # whose plans are known
    changes: tuple[PlanChange, ...]
    differences: tuple[PlanDifference, ...]
    refused: tuple[tuple[str, str], ...]  # a statement without a known plan, and the server's word
    by_round: tuple[PlanByRound, ...] = ()
    rows: tuple[PlanRow, ...] = ()  # each that was met, by statement
