"""Windows on a loaded database, without a plan: bench, knee; and the ceiling of this machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from pgdyno.api.asked import Asked, workload_of
from pgdyno.api.databases import Database, connection_to
from pgdyno.api.table import Table
from pgdyno.drive.driver import Driven
from pgdyno.experiment import calibrate as calibrating
from pgdyno.experiment.knee import Windows, search_knee
from pgdyno.experiment.window import drive_alone
from pgdyno.loader.copy import require_release
from pgdyno.model.calibration import Ceiling
from pgdyno.model.connection import Connection
from pgdyno.model.errors import PlanError
from pgdyno.model.knee import Curve, Point
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress
from pgdyno.model.settings import Rung
from pgdyno.model.workload import Arrivals, Face, Pgbench, Tpcc, Workload, WorkloadKind
from pgdyno.stats.ceiling import ceiling_per_s, fitting
from pgdyno.stats.client_limit import ceiling_share, client_limit, load_of
from pgdyno.stats.knee import Search
from pgdyno.store.calibration import add_ceilings, calibration_path, read_ceilings
from pgdyno.target.home import home, open_home
from pgdyno.target.host_facts import this_machine

_DRAIN_S = 10.0
_COLUMNS = (
    "due", "succeeded", "rolled_back", "failed", "unfinished", "p50_ns", "p90_ns", "p95_ns",
    "p99_ns", "p999_ns", "max_ns", "mean_ns", "exact_below_ns",
)  # fmt: skip
_WINDOWS = Windows(2.0, 10.0)
_SEED = 42  # ceilings of the same requests can be compared
_FACES: tuple[Face, ...] = ("statement", "pipeline", "procedure")


@dataclass(frozen=True, slots=True)
class Benched:
    """A driven window."""

    driven: Driven
    workload: Workload
    client: str  # whether the client was the limit, in a clause

    def kinds(self) -> Table:
        """A row for each kind of transaction: outcomes, response times."""
        rows = [
            {"kind": kind.kind, **asdict(kind.window)}
            | {f"{name}_ns": value for name, value in kind.response_ns.items()}
            for kind in self.driven.kinds
        ]
        return Table.of(rows, ("kind", *_COLUMNS))

    def _repr_html_(self) -> str:
        return self.kinds()._repr_html_()


def bench(
    asked: Asked,
    database: Database,
    *,
    seconds: float = 30.0,
    warmup: float = 5.0,
    on_event: Callable[[DriveProgress], None] = lambda _: None,
) -> Benched:
    """Drive a loaded database for a while.

    Args:
        asked: What is driven, and how.
        database: Loaded with what the workload needs.
        seconds: The window.
        warmup: Before it, not counted.
        on_event: Told twice a second.

    Returns:
        What was measured, also where the driver gave up: see `Driven.error`.

    Raises:
        PlanError: Wishes do not fit each other, or a file cannot be read.
        CheckError: The database does not hold what the workload needs.
        DriveError: The driver failed.
        KeyboardInterrupt: Ctrl-C; nothing is left behind.
    """
    require_release()
    asked.refuse_strangers()
    connection = connection_to(database)
    workload, c_load = workload_of(asked, connection)
    protocol = Protocol(1, warmup, seconds, _DRAIN_S, False, 0.03, 0.95, Rung.D0)
    driven, idle_share = drive_alone(connection, workload, protocol, c_load, on_event, asked.bindir)
    return Benched(driven, workload, _client(driven, workload, idle_share, connection))


def _client(
    driven: Driven, workload: Workload, idle_share: float | None, connection: Connection
) -> str:
    # A ceiling is that of our own driver.
    known = read_ceilings(home()) if workload.engine == "pgdyno" else ()
    ceiling = fitting(known, this_machine(), workload.kind, workload.face, workload.connections)
    load = load_of(
        driven.client,
        host_idle_share=idle_share,
        server_on_host=connection.is_local,
        transactions_per_s=driven.transactions / driven.window_s,
        ceiling_per_s=None if ceiling is None else ceiling_per_s(ceiling, driven.client.threads),
    )
    share = ceiling_share(load)
    reached = "" if share is None else f"; {share:.0%} of the driver's ceiling on this machine"
    return client_limit(load).fact + reached


def knee(
    asked: Asked,
    database: Database,
    search: Search,
    *,
    by: Literal["rate", "terminals"] = "rate",
    kinds: Sequence[str] = (),
    even: bool = False,
    windows: Windows = _WINDOWS,
    on_event: Callable[[Point | str], None] = lambda _: None,
) -> Curve:
    """Search the highest load whose 99th percentile of response times keeps a limit.

    Args:
        asked: What is driven, and how; its rate and terminals are the search's.
        database: See `bench`.
        search: The limit, where to look, and how narrow.
        by: Requests a second that come answered or not, or terminals that wait.
        kinds: Whose response times count; empty: all.
        even: Arrivals at even distances instead of random ones.
        windows: Seconds of each, and of the warm-up before it.
        on_event: Told the load that is tried next, and each point.

    Raises:
        PgdynoError: See `bench`.
    """
    require_release()
    asked.refuse_strangers()
    connection = connection_to(database)
    workload, c_load = workload_of(asked, connection)
    spacing: Literal["even", "poisson"] = "even" if even else "poisson"
    return search_knee(
        connection, replace(workload, arrivals=Arrivals("closed", None, spacing)), c_load, search,
        by=by, kinds=kinds, windows=windows, told=on_event,
    )  # fmt: skip


def calibrate(
    workload: WorkloadKind = "tpcc",
    *,
    faces: Sequence[str] = (),
    connections: int = 8,
    threads: int | None = None,
    seconds: float = 3.0,
    rounds: int = 5,
    keep: bool = True,
    on_event: Callable[[str], None] = lambda _: None,
) -> tuple[Ceiling, ...]:
    """Measure what the driver reaches on this machine against a server that does nothing.

    Args:
        workload: Whose statements; tpcc or one of pgbench's.
        faces: Of the workload; empty: all of them.
        connections: Of the driver.
        threads: Of the driver; None: half of the CPUs.
        seconds: Of a window.
        rounds: Windows for each face.
        keep: Store the result for later reports, in the home.
        on_event: Told what is done next.

    Raises:
        PlanError: The null server has no answers to that.
        DriveError: The driver failed.
    """
    require_release()
    one = _calibrated(workload, connections)
    workloads = [replace(one, face=each) for each in _faces(workload, faces)]
    ceilings = tuple(
        calibrating.calibrate(
            workloads, threads=threads, rounds=rounds, window_s=seconds, told=on_event
        )
    )
    if keep:
        with open_home(home()):  # marked as ours before anything is put there
            add_ceilings(home(), ceilings)
    return ceilings


def calibration_file() -> Path:
    """Where ceilings are kept."""
    return calibration_path(home())


def _faces(workload: WorkloadKind, wanted: Sequence[str]) -> list[Face]:
    # One statement is its own procedure.
    names = _FACES[:2] if workload == "select-only" else _FACES
    known: dict[str, Face] = {face: face for face in names}
    for face in wanted:
        if face not in known:
            raise PlanError(f"face is {face!r}, {workload} has {', '.join(names)}")
    return [known[face] for face in (wanted or names)]


def _calibrated(kind: WorkloadKind, connections: int) -> Workload:
    common = Workload(kind=kind, seed=_SEED, connections=connections, terminals=connections)
    if kind == "tpcc":
        return replace(common, tpcc=Tpcc(warehouses=max(1, connections // 10)))
    if kind in ("mix", "script"):
        raise PlanError(
            f"the null server has no answers to a {kind}", "Calibrate with tpcc, tpcb, select-only."
        )
    return replace(common, pgbench=Pgbench(scale=max(1, connections)))
