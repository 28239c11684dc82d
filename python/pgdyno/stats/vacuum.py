"""What autovacuum takes over a long run, against what fell into the windows by luck.

An episode is one vacuum or analyze of one table, from the server's log. Its WAL and CPU are spread
evenly over its time, which is roughly what the cost delay does. Episodes that had not ended when
the trial did are not in the log, so that these are lower bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Span = tuple[float, float]

# All three are chosen, not measured; reports say so where they decide.
SHARE_TOLERANCE = 0.05  # of all WAL; what windows have more or less is named
TIME_TOLERANCE = 0.25  # of the time; the same where no share of WAL is told
WAL_MIN_BYTES_PER_S = 100e3
"""Of a load; a share of less is not told. Who only reads writes next to none, and vacuum most of
that: by a share of next to nothing any window would be unlike."""


@dataclass(frozen=True, slots=True)
class Episode:
    """One vacuum or analyze; seconds on any clock. WAL and CPU are None where not logged."""

    table: str
    start_s: float
    end_s: float
    wal_bytes: float | None
    cpu_s: float | None


@dataclass(frozen=True, slots=True)
class Taken:
    """What episodes took of some spans of time."""

    span_s: float
    busy_s: float  # during which one ran at least
    wal_bytes: float | None  # None: not logged
    cpu_s: float | None

    @property
    def time_share(self) -> float:
        """Of the spans, during which an episode ran."""
        return self.busy_s / self.span_s if self.span_s else 0.0


def taken(episodes: Sequence[Episode], span: Span) -> Taken:
    """What the episodes took of one span, each by the part of its time that lies in it."""
    begin, end = span
    parts = [(one, _inside(one, span)) for one in episodes]
    hit = [(one, part) for one, part in parts if part > 0 or begin <= one.start_s < end]
    return Taken(
        span_s=end - begin,
        busy_s=_covered([one for one, _ in hit], span),
        wal_bytes=_sum(hit, "wal_bytes", episodes),
        cpu_s=_sum(hit, "cpu_s", episodes),
    )


def together(several: Sequence[Taken]) -> Taken:
    """The sum over several spans; what one of them does not tell, none does."""
    wal = [one.wal_bytes for one in several]
    cpu = [one.cpu_s for one in several]
    return Taken(
        span_s=sum(one.span_s for one in several),
        busy_s=sum(one.busy_s for one in several),
        wal_bytes=None if None in wal else sum(one for one in wal if one is not None),
        cpu_s=None if None in cpu else sum(one for one in cpu if one is not None),
    )


def unlike(run_share: float | None, window_share: float | None, run: Taken, window: Taken) -> bool:
    """Whether windows hold clearly more or less of vacuum than the run.

    Args:
        run_share: Of all WAL of the runs, what vacuum wrote; None: not known.
        window_share: The same of the windows.
        run: What it took of the runs.
        window: What it took of the windows.
    """
    if run_share is not None and window_share is not None:
        return abs(run_share - window_share) > SHARE_TOLERANCE
    return abs(run.time_share - window.time_share) > TIME_TOLERANCE


def late_tables(episodes: Sequence[Episode], load: Span, cycle_s: float) -> tuple[str, ...]:
    """Tables whose first long episode begins after the first cycle of a load.

    One cycle is then not the period of what the server does.
    """
    firsts: dict[str, float] = {}
    for one in sorted(episodes, key=lambda one: one.start_s):
        if one.end_s - one.start_s >= LONG_SHARE * cycle_s and load[0] <= one.start_s < load[1]:
            firsts.setdefault(one.table, one.start_s - load[0])
    return tuple(table for table, start in firsts.items() if start > cycle_s)


LONG_SHARE = 0.02  # of a cycle; shorter episodes are those of small tables


def _inside(one: Episode, span: Span) -> float:
    """Share of an episode that lies in a span."""
    length = one.end_s - one.start_s
    if length <= 0:
        return float(span[0] <= one.start_s < span[1])
    return max(0.0, min(one.end_s, span[1]) - max(one.start_s, span[0])) / length


def _covered(episodes: Sequence[Episode], span: Span) -> float:
    covered, reached = 0.0, span[0]
    for one in sorted(episodes, key=lambda one: one.start_s):
        begin, end = max(one.start_s, reached), min(one.end_s, span[1])
        if end > begin:
            covered += end - begin
            reached = end
    return covered


def _sum(hit: Sequence[tuple[Episode, float]], what: str, every: Sequence[Episode]) -> float | None:
    if any(getattr(one, what) is None for one in every):
        return None
    return float(sum(getattr(one, what) * part for one, part in hit))
