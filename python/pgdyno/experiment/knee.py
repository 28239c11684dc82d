"""Drives a loaded database window by window until the knee of its load-latency curve is found."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pgdyno.drive.driver import Driven, drive
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.knee import Curve, Load, Point
from pgdyno.model.plan import Protocol
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Workload
from pgdyno.stats.knee import Search, knee, next_level
from pgdyno.stats.window_end import exact_below
from pgdyno.store.histogram import merged_quantiles
from pgdyno.target.host_facts import own_version

_SHARES = (0.5, 0.99)
# What is still under way after an overloaded window is given up: it has told what it had to.
_DRAIN_S = 2.0


@dataclass(frozen=True, slots=True)
class Windows:
    """How long each load is driven."""

    warmup_s: float  # before the window, under the same load
    window_s: float


def search_knee(
    connection: Connection,
    workload: Workload,
    c_load: dict[str, int] | None,
    search: Search,
    *,
    by: Load,
    kinds: Sequence[str] = (),
    windows: Windows,
    told: Callable[[Point | str], None] = lambda _: None,
) -> Curve:
    """Search the highest load at which the p99 of response times keeps to a limit.

    Args:
        connection: The loaded database.
        workload: What is driven; its rate or its terminals are replaced.
        c_load: The constants that TPC-C's data were loaded with.
        search: The limit, and the loads to try.
        by: Whether the load is a rate of arrivals or a number of terminals.
        kinds: Transactions whose response times count; none: all.
        windows: How long each load is driven.
        told: Hears what comes next, and every point.

    Raises:
        PlanError: The workload has no such kind of transaction.
        DriveError: The driver failed, or lost the server.
    """
    points: list[Point] = []
    protocol = Protocol(1, windows.warmup_s, windows.window_s, _DRAIN_S, False, 0.03, 0.95, Rung.D0)
    seen: dict[str, None] = {}
    while (level := next_level(search, points)) is not None:
        told(f"{level:,.0f} {'requests a second' if by == 'rate' else 'terminals'}")
        # Other requests each time: repeated ones would find their rows moved together.
        fresh = replace(workload, seed=workload.seed + len(points))
        driven = drive(connection, _loaded(fresh, by, level), protocol, c_load)
        if driven.error:
            raise DriveError(driven.error)
        seen |= dict.fromkeys(kind.kind for kind in driven.kinds)
        point = _point(driven, level, kinds)
        points.append(point)
        told(point)
    return Curve(
        ident=f"{time.strftime('%Y%m%d-%H%M%S')}-knee-{workload.kind}",
        by=by,
        workload=workload.kind,
        face=workload.face,
        connections=workload.connections,
        spacing=workload.arrivals.spacing if by == "rate" else "closed",
        kinds=tuple(kinds) or tuple(seen),
        limit_p99_ns=search.limit_p99_ns,
        window_s=windows.window_s,
        warmup_s=windows.warmup_s,
        points=tuple(points),
        knee=knee(search, points),
        server=connection.shown(),
        pgdyno=own_version(),
    )


def _loaded(workload: Workload, by: Load, level: float) -> Workload:
    if by == "rate":
        return replace(workload, arrivals=replace(workload.arrivals, kind="open", per_s=level))
    # More connections than terminals would never be used.
    terminals = round(level)
    return replace(
        workload, arrivals=Arrivals(), terminals=terminals,
        connections=min(workload.connections, terminals),
    )  # fmt: skip


def _point(driven: Driven, level: float, kinds: Sequence[str]) -> Point:
    known = [kind.kind for kind in driven.kinds]
    if strangers := [kind for kind in kinds if kind not in known]:
        raise PlanError(f"no transaction is called {strangers[0]!r}, known are {', '.join(known)}")
    counted = [kind for kind in driven.kinds if not kinds or kind.kind in kinds]
    p50_ns, p99_ns = merged_quantiles([kind.response for kind in counted], _SHARES)
    return Point(
        level=level,
        offered_per_s=sum(kind.window.due for kind in driven.kinds) / driven.window_s,
        achieved_per_s=driven.transactions / driven.window_s,
        p50_ns=p50_ns,
        p99_ns=p99_ns,
        n=sum(kind.window.timed for kind in counted),
        failed=sum(kind.window.failed for kind in driven.kinds),
        unanswered=sum(kind.window.unanswered for kind in counted),
        exact_below_ns=exact_below([kind.response_ns for kind in counted]),
    )
