"""Drives a loaded database window by window until the knee of its load-latency curve is found.

Which load comes next is a function of the windows so far, so that a search goes on where it was
broken off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pgdyno.drive.driver import Driven, drive
from pgdyno.experiment.progress import Listener
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.knee import Load, Point, Searched
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import PointMeasured, StepBegun
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Workload
from pgdyno.stats.knee import keeps, next_level
from pgdyno.stats.window_end import exact_below
from pgdyno.store.histogram import merged_quantiles

_SHARES = (0.5, 0.99)
# What is still under way after an overloaded window is given up: it has told what it had to.
_DRAIN_S = 2.0


def search_knee(
    connection: Connection,
    so_far: Searched,
    *,
    keep: Callable[[Searched], None] = lambda _: None,
    listener: Listener = lambda _: None,
) -> Searched:
    """Search the highest load at which the p99 of response times keeps to a limit.

    Args:
        connection: The loaded database.
        so_far: What is asked, and the windows that were measured before.
        keep: Gets all of it after each window.
        listener: Told which load comes next, and every point.

    Raises:
        PlanError: The workload has no such kind of transaction.
        DriveError: The driver failed, or lost the server.
        KeyboardInterrupt: Ctrl-C; what was measured is kept.
    """
    asked = so_far.asked
    protocol = Protocol(
        1, asked.windows.warmup_s, asked.windows.window_s, _DRAIN_S, False, 0.03, 0.95, Rung.D0
    )
    keep(so_far)
    while (level := next_level(asked.search, so_far.points)) is not None:
        unit = "requests a second" if asked.by == "rate" else "terminals"
        listener(StepBegun(f"{level:,.0f} {unit}"))
        # Other requests each time: repeated ones would find their rows moved together.
        fresh = replace(asked.workload, seed=asked.workload.seed + len(so_far.points))
        driven = drive(connection, _loaded(fresh, asked.by, level), protocol, asked.c_load)
        if driven.error:
            raise DriveError(driven.error)
        point = _point(driven, level, asked.kinds)
        kinds = dict.fromkeys((*so_far.kinds, *(kind.kind for kind in driven.kinds)))
        so_far = replace(so_far, points=(*so_far.points, point), kinds=tuple(kinds))
        keep(so_far)
        listener(PointMeasured(point, keeps(point, asked.search.limit_p99_ns)))
    return so_far


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
