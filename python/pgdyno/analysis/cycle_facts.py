"""What a report says of checkpoint cycles and vacuum: a part of `facts`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AnchorFacts:
    """A trial of 1.3 checkpoint cycles; throughput in the metric of `Facts.headline`."""

    trial: int
    round: int
    cycle_s: float
    whole: float  # a whole cycle in its steady state
    short: float  # the phase that the short windows of other rounds have
    writes_leave: float  # share of the throughput that a checkpoint's writes leave
    curve: tuple[float, ...]  # the first cycle in equal parts


@dataclass(frozen=True, slots=True)
class VacuumTable:
    """Episodes of autovacuum on one table, all finished rounds of a stage together."""

    table: str
    episodes: int
    run_s: float  # of the load
    window_s: float  # of the windows
    wal_bytes: float | None  # None: not logged


@dataclass(frozen=True, slots=True)
class VacuumCost:
    """What autovacuum takes of one transaction; None: not logged, or no transaction ended."""

    wal_bytes: float | None
    cpu_us: float | None


@dataclass(frozen=True, slots=True)
class VacuumFacts:
    """What autovacuum took of a stage's load, and what of that fell into its windows."""

    time_share: float
    window_time_share: float
    wal_share: float | None  # of all WAL; None: not logged
    window_wal_share: float | None
    cpu_s: float | None
    window_cpu_s: float | None
    cost: VacuumCost  # over the whole load
    window_cost: VacuumCost  # what the windows were charged with
    tables: tuple[VacuumTable, ...]
    missed_rounds: tuple[int, ...]  # whose load has episodes, and whose window has none
    unlike: bool  # windows hold clearly more or less of it than the load


@dataclass(frozen=True, slots=True)
class CycleFacts:
    """Checkpoint cycles of a stage, from one checkpoint's start to the next one's."""

    stage: str
    follows: str  # ignore | cycles | anchors
    cycles_s: tuple[float, ...]  # as seen in each finished trial whose load held a begin
    expected_s: float | None  # what the settings make of the rate of WAL
    wal_bytes_per_s: float | None
    whole_windows: int  # windows of whole cycles
    windows: int
    anchors: tuple[AnchorFacts, ...]
    invalid: tuple[str, ...]  # why anchors do not tell what whole cycles do
    only_reads: bool  # all its loads do, as is known: nothing is put off to a checkpoint
    vacuum: VacuumFacts | None  # None: no episode is known
