"""What a report says of probed storage, as frozen records; `analysis.storage` makes them."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.analysis.facts import Comparison
from pgdyno.model.floor import (
    Clock,
    DeviceClaims,
    GridPoint,
    Pattern,
    Prepared,
    Probed,
    SyncRate,
    UnderCheckpoint,
    Wish,
    line_of,
)
from pgdyno.model.floor_figures import (
    DRIFTS,
    Cap,
    Doubt,
    FlushFigure,
    IopsKnee,
    Span,
    Times,
)
from pgdyno.model.wording import plural


@dataclass(frozen=True, slots=True)
class PatternFacts:
    """One pattern of requests on a path, under every load that was tried."""

    pattern: Pattern
    fastest: tuple[GridPoint, ...]  # for each number of requests under way
    found: IopsKnee


@dataclass(frozen=True, slots=True)
class CommitFacts:
    """What so many clients commit a second."""

    clients: int
    at_most: Span  # that flushes allow, transactions taking no time at all
    per_s: Span | None  # with transactions; None: their time is not known
    # The same of flushes back to back, where the figure is of faster ones; None: it is not.
    at_most_in_a_row: float | None = None
    per_s_in_a_row: float | None = None


@dataclass(frozen=True, slots=True)
class PathFacts:
    """All that is said of one path."""

    path: str
    on_first_device: bool  # its file system is that of the first path
    claims: DeviceClaims
    prepared: Prepared
    syncs: tuple[SyncRate, ...]
    fastest_methods: dict[str, str]  # by test of pg_test_fsync
    grid: tuple[GridPoint, ...]
    patterns: tuple[PatternFacts, ...]
    cap: Cap
    flush: FlushFigure
    heaviest: dict[Pattern, Span]  # requests a second under the heaviest load, by rounds
    many_times: dict[Pattern, Times]  # the heaviest load against one at a time, by rounds
    rest_factors: tuple[Span, ...]  # by PAUSES_US, times a flush without rest; (): not measured
    rest_times: tuple[Times, ...]  # the same with intervals, by rounds as pairs
    mixed: tuple[UnderCheckpoint, ...]  # by round
    under_checkpoint: Span  # commits a second
    beside_commits: Span  # random writes a second
    commits: tuple[CommitFacts, ...]
    commit_delay_us: int
    disagreements: tuple[Doubt, ...]  # between the programs that measured
    doubts: tuple[Doubt, ...]  # of what the path claims
    against_first: dict[str, Comparison]  # by figure; of the first path, or without rounds: none

    def sync(self, test: str, method: str) -> SyncRate | None:
        """One line of pg_test_fsync; None: it is not there, or has no number."""
        return line_of(self.syncs, test, method)

    def of_pattern(self, pattern: Pattern) -> PatternFacts:
        """What was found under a pattern; a missing one is a bug."""
        return next(one for one in self.patterns if one.pattern == pattern)

    def of_clients(self, clients: int) -> CommitFacts:
        """What so many clients commit; a number not in `StorageFacts.clients` is a bug."""
        return next(one for one in self.commits if one.clients == clients)


@dataclass(frozen=True, slots=True)
class StorageFacts:
    """All that is said of the paths that one call of `pgdyno storage` probed."""

    ident: str
    started_unix_ns: int
    pgdyno: str
    programs: dict[str, str]  # versions: PostgreSQL's, fio's
    cpus: int
    wish: Wish
    clients: tuple[int, ...]  # numbers of them that commits are derived for
    rounds: int  # of probes in turn that ended
    clock: Clock
    clock_doubts: tuple[Doubt, ...]
    busy_doubts: tuple[Doubt, ...]  # of the machine while it was measured
    paths: tuple[PathFacts, ...]
    measured: Probed  # as it is, for the JSON

    @property
    def unsteady(self) -> bool:
        """Whether the machine was busy or a flush drifted: settings should not rest on that."""
        told = (one.what for path in self.paths for one in path.disagreements)
        return bool(self.busy_doubts) or DRIFTS in told

    @property
    def left(self) -> str | None:
        """What was not measured since it was stopped; None: nothing is left."""
        if self.measured.is_whole:
            return None
        rounds, paths = self.measured.wish.rounds or 0, len(self.wish.paths)
        if self.rounds >= rounds and len(self.paths) >= paths:
            return "all but random reads on all paths at once"
        return (
            f"{self.rounds} of {plural(rounds, 'round')} of probes, and {len(self.paths)} of"
            f" {plural(paths, 'path')} in full"
        )
