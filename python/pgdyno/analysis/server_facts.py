"""What a report says of several servers that a workload was divided over."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerRow:
    """One server in all finished rounds of a stage; medians of rounds, where nothing else is said.

    What a server's own counters tell is None where it did not show them to our role.
    """

    stage: str
    server: str
    held: str  # what of the workload's data it has
    version: str  # what it calls itself, without the compiler
    rounds: int
    throughput: float  # in the metric of the report
    share: float  # of all servers' together
    percentiles_ns: tuple[int, ...] | None  # main kind: p50, p95, p99, maximum; rounds merged
    exact_below_ns: int | None  # from which on these are lower bounds; None: all are exact
    commits_per_s: float | None  # by its own count, in the driven database
    commits_are_most: bool  # those of sessions that look on are among them, how many nobody knows
    wal_bytes_per_s: float | None
    wal_bytes_per_transaction: float | None  # that came to its end there
    checkpoints: float | None  # timed and requested, all rounds together
    checked: int  # rounds whose data were checked
    violations: int  # rows against conditions of consistency, all those rounds together


@dataclass(frozen=True, slots=True)
class UnlikeSetting:
    """A setting that servers of one run have otherwise, by their first measured trial."""

    name: str
    values: tuple[str | None, ...]  # by server, in their order; None: its default, or not told


@dataclass(frozen=True, slots=True)
class ServersFacts:
    """The servers of a run."""

    names: tuple[str, ...]
    share: str  # alike | block, as the plan says
    rows: tuple[ServerRow, ...]
    unlike: tuple[UnlikeSetting, ...]
