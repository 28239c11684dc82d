"""Searches the highest load that keeps a latency limit: which load next, and where the knee is.

The search is a pure function of the points measured so far, so it can be tested on systems whose
knee is known. It first doubles the load until a window breaks the limit (or halves it until one
keeps it), then halves the bracket on a log scale until it is narrow, then measures both ends again,
because one window near the knee says little. Verdicts of single windows may contradict each other:
the knee is the cut that contradicts the fewest of them, at equal counts the lowest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from pgdyno.model.errors import PgdynoError
from pgdyno.model.knee import Curve, Knee, Point, Search, Searched

# Beyond the capacity the backlog grows with the window: the rate itself is not kept then, whatever
# the percentile of those that were answered says.
ACHIEVED_MIN = 0.95
GROWTH = 2.0


def keeps(point: Point, limit_p99_ns: int) -> bool:
    """Whether a window kept to the limit: its p99, all of it, its rate, and no failure."""
    return (
        point.n > 0
        and point.failed == 0
        and point.is_p99_exact
        and point.p99_ns <= limit_p99_ns
        and point.achieved_per_s >= ACHIEVED_MIN * point.offered_per_s
    )


def next_level(search: Search, points: Sequence[Point]) -> float | None:
    """The load to measure next; None: the search is over."""
    if not points:
        return search.start
    if len(points) >= search.points_max:
        return None
    low, high, _ = _bracket(search, points)
    if high is None:
        assert low is not None, "points have levels"
        grown = _rounded(search, min(search.high, low * GROWTH))
        return _again(search, points, low) if grown <= low else grown
    if low is None:
        shrunk = _rounded(search, max(search.low, high / GROWTH))
        return _again(search, points, high) if shrunk >= high else shrunk
    if not _narrow(search, low, high):
        return _rounded(search, sqrt(low * high))
    # Both ends in turn: the one that was measured less.
    return _again(search, points, *sorted((low, high), key=lambda level: _count(points, level)))


def knee(search: Search, points: Sequence[Point]) -> Knee:
    """What the points say of the knee.

    Raises:
        PgdynoError: There are no points.
    """
    if not points:
        raise PgdynoError("no point was measured, at least one is needed")
    low, high, contradictions = _bracket(search, points)
    settled = all(
        _count(points, level) >= search.repeats for level in (low, high) if level is not None
    )
    if not settled:
        return Knee("unsettled", low, high, contradictions)
    if high is None:
        reached = low is not None and low >= search.high
        return Knee("above" if reached else "unsettled", low, None, contradictions)
    if low is None:
        reached = high <= search.low
        return Knee("below" if reached else "unsettled", None, high, contradictions)
    narrow = _narrow(search, low, high)
    return Knee("found" if narrow else "unsettled", low, high, contradictions)


def _bracket(search: Search, points: Sequence[Point]) -> tuple[float | None, float | None, int]:
    """The cut that contradicts the fewest windows: levels on both sides, and how many it does."""
    levels = sorted({point.level for point in points})
    kept = {level: 0 for level in levels}
    broke = {level: 0 for level in levels}
    for point in points:
        side = kept if keeps(point, search.limit_p99_ns) else broke
        side[point.level] += 1
    # Cut n lies below level n: what keeps above it and what breaks below it contradicts it.
    wrong = sum(kept.values())
    best, fewest = 0, wrong
    for cut, level in enumerate(levels, 1):
        wrong += broke[level] - kept[level]
        if wrong < fewest:
            best, fewest = cut, wrong
    low = levels[best - 1] if best > 0 else None
    high = levels[best] if best < len(levels) else None
    return low, high, fewest


def _narrow(search: Search, low: float, high: float) -> bool:
    return high <= low * (1 + search.width) or (search.whole and high - low <= 1)


def _rounded(search: Search, level: float) -> float:
    return float(round(level)) if search.whole else level


def _count(points: Sequence[Point], level: float) -> int:
    return sum(point.level == level for point in points)


def _again(search: Search, points: Sequence[Point], *levels: float) -> float | None:
    """The first of the levels that was not measured often enough."""
    lacking = (level for level in levels if _count(points, level) < search.repeats)
    return next(lacking, None)


def curve(searched: Searched, ident: str, pgdyno: str) -> Curve:
    """What a search, finished or not, measured and found.

    Raises:
        PgdynoError: No point was measured.
    """
    asked, workload = searched.asked, searched.asked.workload
    return Curve(
        ident=ident,
        by=asked.by,
        workload=workload.kind,
        face=workload.face,
        connections=workload.connections,
        spacing=workload.arrivals.spacing if asked.by == "rate" else "closed",
        kinds=asked.kinds or searched.kinds,
        limit_p99_ns=asked.search.limit_p99_ns,
        window_s=asked.windows.window_s,
        warmup_s=asked.windows.warmup_s,
        points=searched.points,
        knee=knee(asked.search, searched.points),
        server=searched.server,
        pgdyno=pgdyno,
    )
