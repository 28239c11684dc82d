"""A load-latency curve, and where on it a latency limit is crossed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.bounds import require_within
from pgdyno.model.errors import PgdynoError, PlanError
from pgdyno.model.wording import plural
from pgdyno.model.workload import Workload

Load = Literal["rate", "terminals"]
_MS_NS = 1e6
_LEAST: dict[str, float] = {
    "p99_ms": 0.01, "start": 0.1, "most": 0.1, "width": 0.001, "repeats": 1, "points": 2,
}  # fmt: skip
"""Of what people ask a search for: below it no search ends at something."""
KneeState = Literal["found", "above", "below", "unsettled"]


@dataclass(frozen=True, slots=True)
class Point:
    """One window under a certain load."""

    level: float  # requests due a second, or terminals
    offered_per_s: float  # requests that became due a second
    achieved_per_s: float  # requests that ended well a second
    p50_ns: int  # of response times, from the due time
    p99_ns: int
    n: int  # response times behind the two
    failed: int = 0
    unanswered: int = 0  # of these; they count as at least the time until they were given up
    exact_below_ns: int | None = None  # from here on the two are lower bounds; None: both exact

    @property
    def is_p99_exact(self) -> bool:
        """Whether the p99 is not only known to be at least so much."""
        return self.exact_below_ns is None or self.p99_ns < self.exact_below_ns


@dataclass(frozen=True, slots=True)
class Knee:
    """The highest load that keeps to the limit, as a bracket.

    found: it lies from `low` to `high`. above: the highest load tried still keeps to the limit.
    below: the lowest one does not. unsettled: the points did not suffice, the bracket is wider
    than asked for, or its ends were not measured often enough.
    """

    state: KneeState
    low: float | None  # the highest load that keeps to the limit; None: below
    high: float | None  # the lowest one that does not; None: above
    contradictions: int  # windows on the wrong side of the bracket: the noise


@dataclass(frozen=True, slots=True)
class Search:
    """What is searched, and how long."""

    limit_p99_ns: int
    start: float  # the first load
    low: float  # the lowest load to try
    high: float  # the highest
    width: float = 0.05  # the bracket is narrow enough when high / low <= 1 + width
    repeats: int = 3  # windows at each end of the final bracket
    points_max: int = 24
    whole: bool = False  # loads are whole numbers, e.g. of terminals

    @classmethod
    def of(
        cls,
        p99_ms: float,
        *,
        by: Load = "rate",
        start: float = 50.0,
        most: float = 1e6,
        width: float = 0.05,
        repeats: int = 3,
        points: int = 24,
    ) -> Search:
        """A search for the highest load that keeps a limit, as people ask for it.

        Args:
            p99_ms: The limit of the 99th percentile of response times.
            by: What the load is. Terminals are whole, and at least one.
            start: The first load. It is halved where it breaks the limit, down to 1 (a rate may
                begin below that, and then ends there).
            most: The highest load to try.
            width: The search ends when the bracket is this narrow, as a share.
            repeats: Windows at each end of the bracket.
            points: The search ends after this many windows.

        Raises:
            PlanError: A number is too small, or the first load is above the highest.
        """
        asked: dict[str, float] = {
            "p99_ms": p99_ms, "start": start, "most": most, "width": width, "repeats": repeats,
            "points": points,
        }  # fmt: skip
        for name, value in asked.items():
            require_within(name, value, _LEAST[name], None, "A search has to end at something.")
        limit_ns = round(p99_ms * _MS_NS)
        if start > most:
            raise PlanError(
                f"the first load is {start:g}, the highest is {most:g}", "Start below the highest."
            )
        if by == "rate":
            return cls(limit_ns, start, min(start, 1.0), most, width, repeats, points)
        first = max(1.0, float(round(start)))
        return cls(limit_ns, first, 1.0, float(round(most)), width, repeats, points, whole=True)

    def __post_init__(self) -> None:
        if not 0 < self.low <= self.start <= self.high:
            raise PgdynoError(
                f"the search starts at {self.start:g}, allowed are {self.low:g} to {self.high:g}"
            )
        if self.width <= 0 or self.repeats < 1 or self.points_max < 1 or self.limit_p99_ns < 1:
            raise PgdynoError(
                f"width {self.width:g}, {plural(self.repeats, 'repeat')},"
                f" {plural(self.points_max, 'point')},"
                f" limit {self.limit_p99_ns} ns: all must be above 0"
            )


@dataclass(frozen=True, slots=True)
class Windows:
    """How long each load is driven."""

    warmup_s: float  # before the window, under the same load
    window_s: float


@dataclass(frozen=True, slots=True)
class KneeAsked:
    """What a search was asked for."""

    workload: Workload  # its rate or its terminals are the search's
    search: Search
    windows: Windows
    by: Load
    kinds: tuple[str, ...] = ()  # whose response times count; none: all
    c_load: dict[str, int] | None = None  # constants that TPC-C's data were loaded with


@dataclass(frozen=True, slots=True)
class Searched:
    """A search as far as it came: what is kept after each window."""

    asked: KneeAsked
    server: str  # for people
    conninfo: str  # how to get there again, without its password
    points: tuple[Point, ...] = ()  # in the order of measurement
    kinds: tuple[str, ...] = ()  # that were driven


@dataclass(frozen=True, slots=True)
class Curve:
    """What a search measured and found."""

    ident: str  # time and workload
    by: Load
    workload: str
    face: str
    connections: int
    spacing: str  # of arrivals: even, poisson; closed when the load is a number of terminals
    kinds: tuple[str, ...]  # whose response times count
    limit_p99_ns: int
    window_s: float
    warmup_s: float
    points: tuple[Point, ...]  # in the order of measurement
    knee: Knee
    server: str  # host, port, database
    pgdyno: str
