"""Figures of a measured floor: what its probes amount to, and where its sources disagree.

They are derived, and in no run file; how, is told in `stats.flush_figure` and `stats.storage`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.floor import GridPoint

PROGRAMS = ("pg_test_fsync", "fio")
DEFAULT_METHOD = "fdatasync"  # wal_sync_method on Linux
APART = 1.25  # times: what differs by more is told
DRIFTS = "the time of a flush drifts"
NEAR_PEAK = 0.9  # of the highest rate: the knee is the first load that reaches it
Capped = Literal["host", "device", "processor", "not reached", "host or device", "not known"]


@dataclass(frozen=True, slots=True)
class Span:
    """Repeated probes of one thing."""

    mid: float  # their median
    low: float
    high: float
    n: int

    def as_rates(self) -> Span:
        """Times in ns as rates a second."""
        return Span(1e9 / self.mid, 1e9 / self.high, 1e9 / self.low, self.n)


@dataclass(frozen=True, slots=True)
class Times:
    """How many times as fast one thing is as another, by rounds as pairs."""

    one: Span  # rates a second of what is compared with
    many: Span  # of the other
    ratio: float
    low: float | None  # None: measured once, so that nothing is known of it
    high: float | None

    def reaches(self, least: float) -> bool | None:
        """Whether it is so many times or more; None: it is not known, either may be."""
        return _reaches(self.low, self.high, least)

    @property
    def faster(self) -> bool | None:
        """Whether it is faster, or slower; None: its interval holds 1, or there is none."""
        if self.low is None or self.high is None or self.low <= 1 <= self.high:
            return None
        return self.low > 1


@dataclass(frozen=True, slots=True)
class Level:
    """How much there is of something that every round measures anew."""

    rounds: Span
    low: float | None  # of the interval; None: measured once, so that nothing is known of it
    high: float | None

    def reaches(self, least: float) -> bool | None:
        """Whether it is so much or more; None: it is not known, either may be."""
        return _reaches(self.low, self.high, least)


def _reaches(low: float | None, high: float | None, least: float) -> bool | None:
    if low is None or high is None or low < least <= high:
        return None
    return low >= least


@dataclass(frozen=True, slots=True)
class FlushFigure:
    """What a flush of one page takes on a path, by PostgreSQL's default method."""

    flush: Span  # ns; `n` counts the probes
    rounds: int  # of probes in turn; 0: each program measured once
    programs: tuple[Span, ...]  # ns, as PROGRAMS has them
    commits: Span  # a second, that one client reaches at most
    # Where commits were faster than in a row, e.g. "under a checkpoint"; None: nowhere.
    otherwise: str | None

    @property
    def in_a_row(self) -> Span:
        """Of the faster program, in ns: commits with nothing beside or between them."""
        return min(self.programs, key=lambda one: one.mid)

    @property
    def faster_otherwise(self) -> bool:
        """Whether commits were faster after rest, or beside other writes, than in a row."""
        return self.in_a_row.mid > APART * self.flush.mid


@dataclass(frozen=True, slots=True)
class IopsKnee:
    """Where more requests under way stop raising the rate of a pattern."""

    peak: GridPoint
    knee: GridPoint  # the smallest load near the peak
    flat: bool  # a load at least twice as large was measured, and was no faster


@dataclass(frozen=True, slots=True)
class Cap:
    """What keeps random reads from being faster."""

    by: Capped
    fact: str


@dataclass(frozen=True, slots=True)
class Doubt:
    """A claim and a measurement that do not go together, or two measurements."""

    what: str  # the same for all paths that it is true of
    detail: str  # of this path, with both values
    hint: str

    @property
    def fact(self) -> str:
        """All of it, for one path."""
        return f"{self.what}: {self.detail}"
