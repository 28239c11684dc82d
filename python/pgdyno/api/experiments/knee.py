"""The knee of a loaded database: the highest load that keeps a latency limit.

    drive a window -> its point -> keep -> the next load, until the knee is narrow enough

Which load comes next is a function of the windows so far, so that a search goes on where it was
broken off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from psycopg.conninfo import make_conninfo

from pgdyno.analysis.curve import curve_facts
from pgdyno.api.asked import Asked, workload_of
from pgdyno.api.databases import Database, connection_to
from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Experiment, Run
from pgdyno.api.storing import begun, going_on, stored
from pgdyno.catalog.contract import require_release
from pgdyno.drive.driver import Driven, drive
from pgdyno.loader.consistency import loaded_workload
from pgdyno.model.connection import Connection
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.knee import KneeAsked, Load, Point, Search, Searched, Windows
from pgdyno.model.plan import Protocol
from pgdyno.model.pooler import POOLED
from pgdyno.model.progress import Noted, PointMeasured, StepBegun
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Spacing, Workload
from pgdyno.plan.schema.read import holds_password
from pgdyno.report import curve
from pgdyno.stats.knee import keeps, next_level
from pgdyno.stats.window_end import exact_below
from pgdyno.store.histogram import merged_quantiles
from pgdyno.target.database_use import in_use
from pgdyno.trial.progress import Listener

_WINDOWS = Windows(2.0, 10.0)
_SHARES = (0.5, 0.99)
# What is still under way after an overloaded window is given up: it has told what it had to.
_DRAIN_S = 2.0


@with_line
def knee(
    asked: Asked,
    database: Database,
    search: Search,
    *,
    by: Load = "rate",
    kinds: Sequence[str] = (),
    even: bool = False,
    windows: Windows = _WINDOWS,
    out: str | Path | None = None,
    command: str = "pgdyno.knee(...), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Search the highest load whose 99th percentile of response times keeps a limit.

    Args:
        asked: What is driven, and how; its rate and terminals are the search's.
        database: See `bench`.
        search: The limit, where to look, and how narrow.
        by: Requests a second that come answered or not, or terminals that wait.
        kinds: Whose response times count; empty: all.
        even: Arrivals at even intervals instead of random ones.
        windows: Seconds of each, and of the warm-up before it.
        out: The run file, a page goes beside it; None: `runs/<time>-knee-<workload>.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told the load that is tried next, and each point.

    Returns:
        The run; see `Run.curve`.

    Raises:
        PgdynoError: See `bench`. What was measured until then is kept.
        Interrupted: Ctrl-C; the same.
    """
    require_release()
    asked.refuse_strangers()
    asked.require_windows(windows.window_s, windows.warmup_s)
    if isinstance(database, str) and holds_password(database):
        raise PlanError(
            "the conninfo holds a password, which would be stored with the results",
            "Set PGPASSWORD, or use ~/.pgpass.",
        )
    run = begun("knee", f"knee-{asked.kind}", command, out)
    connection = connection_to(database)
    if connection.prepare == "unnamed":
        on_event(Noted(POOLED))
    workload, c_load = workload_of(asked, connection)
    spacing: Spacing = "even" if even else "poisson"
    workload = replace(workload, arrivals=Arrivals("closed", None, spacing))
    what = KneeAsked(workload, search, windows, by, tuple(kinds), c_load)
    so_far = Searched(what, connection.shown(), _conninfo(connection))
    with in_use(connection, alone=True, databases=workload.databases), stored(run) as keep:
        search_knee(connection, so_far, keep=keep, listener=on_event)
    return run.reported()


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Resume a search after its last window; see `api.resume`.

    Raises:
        PlanError: The data were loaded anew since, with other constants.
    """
    so_far = run.searched
    connection = connection_to(so_far.conninfo)
    if so_far.asked.workload.tpcc and so_far.asked.c_load != loaded_workload(connection).c_load:
        raise PlanError(
            f"database {connection.database} was loaded anew since {run.path} was begun",
            "Windows before and after cannot be compared. Start a new search.",
        )
    found = going_on(run)
    databases = so_far.asked.workload.databases
    with in_use(connection, alone=True, databases=databases), stored(found) as keep:
        search_knee(connection, so_far, keep=keep, listener=on_event)
    return found.reported()


def _conninfo(connection: Connection) -> str:
    """All of its parameters but the passwords."""
    known = {key: value for key, value in connection.arguments().items() if key != "password"}
    return make_conninfo(**known)


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


EXPERIMENT = Experiment(
    lambda run: next_level(run.searched.asked.search, run.searched.points) is None,
    {
        "html": lambda run: curve.render_html(curve_facts(run.curve)),
        "md": lambda run: curve.render_md(curve_facts(run.curve)),
        "json": lambda run: curve.render_json(curve_facts(run.curve)),
    },
    lambda run: curve.summary(curve_facts(run.curve)),
    resume,
)
