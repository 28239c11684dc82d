"""What may be done about storage, whether a probe or a load tells that it is worth trying."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.analysis.disk_facts import Advice
from pgdyno.model.wording import plural
from pgdyno.stats.compare import CONFIDENCE


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to do."""

    what: str  # as a command
    by: str  # settings, or a command, that do it
    probed: str  # what of a probe of a disk tells whether it is worth trying
    plan: str | None  # that comes with pgdyno and measures it on a server; None: none does


READS = Step(
    "Ask for many pages at once",
    "effective_io_concurrency; io_method and io_workers of 18",
    "random reads, many at once against one at a time",
    "parallel-io",
)
MAINTENANCE = Step(
    "Let vacuum and analyze ask for many pages at once",
    "maintenance_io_concurrency",
    "random reads, many at once against one at a time",
    "parallel-maintenance",
)
SCANS = Step(
    "Scan, vacuum and build indexes with several processes",
    "parallel vacuum and index builds",
    "reads in sequence, by several processes against one",
    "parallel-maintenance",
)
SPREAD = Step(
    "Spread tables and indexes over these disks",
    "several tablespaces or partitions",
    "random reads of several disks, named together",
    None,
)
WRITES = Step(
    "Change what checkpoints and the background writer hand over at a time",
    "checkpoint_flush_after and bgwriter_flush_after",
    "random writes, many at once against one at a time, and commits beside them",
    "handed-over-writes",
)
WAL_APART = Step(
    "Keep WAL apart from the data",
    "WAL on a disk of its own",
    "commits beside random writes, and flushes of several disks, named together",
    None,
)
COMMITS = Step(
    "Let commits share flushes", "commit_delay", "the time of a flush of one page", "group-commit"
)
STEPS = (READS, MAINTENANCE, SCANS, SPREAD, WRITES, WAL_APART, COMMITS)
"""In the order in which a report tells them."""

READS_LIMITS = (
    "io_workers is of 18, where each of them reads one page after another; io_method = io_uring"
    " needs none of them, in builds that have it. Before 18 only bitmap scans and ANALYZE read"
    " ahead. Index scans ask for one page at a time in every version: only more sessions have more"
    " of their reads under way."
)
BY_TABLESPACES = (
    "By tablespaces, or by partitions in several of them; `temp_tablespaces` for sorts. A backup"
    " and a standby then need all of them."
)
DATA_MAY_STAY = (
    "`initdb --waldir`. The data may lie on the slower one, if both are disks of their own:"
    " checkpoints wait for it, commits do not."
)


def interval_text(ends: str, rounds: int) -> str:
    """Named, as what stands in brackets after a rate is its lowest and its highest round."""
    return f"{CONFIDENCE:.0%} interval {ends}, {plural(rounds, 'round')}"


def shared_flushes(where: str, seen: str, delay_us: int) -> Advice:
    """To have commits wait for each other.

    Args:
        where: The path, or the stage.
        seen: What speaks for it.
        delay_us: `commit_delay`.
    """
    return Advice(
        where,
        COMMITS.what,
        seen,
        {"commit_delay": str(delay_us), "commit_siblings": "5"},
        "With few sessions, or where flushes are shared anyway, a delay only delays: `pgdyno init"
        f" --setting commit_delay={delay_us}` makes a plan that measures this one on TPC-C.",
        COMMITS.plan,
    )
