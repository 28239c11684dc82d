"""The knee of a loaded database: the highest load that keeps a latency limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from psycopg.conninfo import make_conninfo

from pgdyno.analysis.curve import curve_facts
from pgdyno.api.asked import Asked, workload_of
from pgdyno.api.databases import POOLED, Database, connection_to
from pgdyno.api.experiments import Experiment
from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Run
from pgdyno.api.storing import begun, going_on, stored
from pgdyno.catalog.contract import require_release
from pgdyno.experiment.knee import search_knee
from pgdyno.experiment.progress import Listener
from pgdyno.loader.consistency import loaded_workload
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.knee import KneeAsked, Load, Search, Searched, Windows
from pgdyno.model.progress import Noted
from pgdyno.model.workload import Arrivals, Spacing
from pgdyno.plan.schema.read import holds_password
from pgdyno.report import curve
from pgdyno.stats.knee import next_level
from pgdyno.target.database_use import in_use

_WINDOWS = Windows(2.0, 10.0)


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
    """Go on with a search after its last window; see `api.resume`.

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
