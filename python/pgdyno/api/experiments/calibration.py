"""The ceiling of this machine: what the driver reaches against a server that does nothing.

    a null server -> drive a window, face by face -> keep -> the next round, until all are measured

The driver and the null server get CPUs of their own, as far as there are two. A ceiling therefore
is that of the driver on its share of the CPUs; figures per second of CPU hold for any number.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

from pgdyno.analysis.calibration import calibration_facts
from pgdyno.analysis.calibration_facts import CalibrationFacts
from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Experiment, Run
from pgdyno.api.storing import Begun, begun, going_on, stored
from pgdyno.catalog.contract import default, require_release
from pgdyno.drive.driver import Driven, Wishes, drive
from pgdyno.drive.null import Account, NullServer, null_server
from pgdyno.model.bounds import require_within
from pgdyno.model.calibration import WARMUP_S, Calibrated, Round
from pgdyno.model.errors import DriveError, PlanError
from pgdyno.model.plan import Protocol
from pgdyno.model.progress import DriveProgress, StepBegun
from pgdyno.model.settings import Rung
from pgdyno.model.wording import plural
from pgdyno.model.workload import CONNECTIONS, Face, Pgbench, Tpcc, Workload, WorkloadKind
from pgdyno.report import ceiling
from pgdyno.store.calibration import add_ceilings, calibration_path
from pgdyno.target.home import home, open_home
from pgdyno.target.host_facts import own_version, this_machine
from pgdyno.trial.progress import Listener

_SEED: int = default("TpccSpec", "seed")  # ceilings of the same requests can be compared
_FACES: tuple[Face, ...] = get_args(Face)
_DRAIN_S = 5.0
_WINDOW_MIN_S = 0.5
_ROUNDS_MAX = 1000


@with_line
def calibrate(
    workload: WorkloadKind = "tpcc",
    *,
    faces: Sequence[str] = (),
    connections: int = CONNECTIONS,
    threads: int | None = None,
    seconds: float = 3.0,
    rounds: int = 5,
    keep: bool = True,
    out: str | Path | None = None,
    command: str = "pgdyno.calibrate(...), from Python",
    on_event: Listener = lambda _: None,
) -> Run:
    """Measure what the driver reaches on this machine against a server that does nothing.

    Args:
        workload: Whose statements; tpcc or one of pgbench's.
        faces: Of the workload; empty: all of them.
        connections: Of the driver.
        threads: Of the driver; None: half of the CPUs.
        seconds: Of a window.
        rounds: Windows for each face.
        keep: Store the ceilings for later reports, in the home.
        out: The run file, a page goes beside it; None: `runs/<time>-calibration.sqlite`.
        command: How to repeat it, as the run file keeps it.
        on_event: Told what is done next.

    Returns:
        The run; see `Run.ceilings`.

    Raises:
        PlanError: The null server has no answers to that, or a number is outside of its range.
        DriveError: The driver failed. What was measured until then is kept.
        Interrupted: Ctrl-C; the same.
    """
    require_release()
    require_within("seconds", seconds, _WINDOW_MIN_S, None, "Shorter windows tell no ceiling.")
    require_within("rounds", rounds, 1, _ROUNDS_MAX, "Each face gets a window in each.")
    one = _calibrated(workload, connections)
    workloads = [replace(one, face=each) for each in _faces(workload, faces)]
    so_far = begin(workloads, threads=threads, rounds=rounds, window_s=seconds, kept=keep)
    run = begun("calibration", "calibration", command, out)
    return _measured(run, so_far, on_event)


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Resume a calibration after its last window; see `api.resume`."""
    return _measured(going_on(run), run.calibrated, on_event)


def calibration_file() -> Path:
    """Where ceilings are kept."""
    return calibration_path(home())


def _measured(run: Begun, so_far: Calibrated, on_event: Listener) -> Run:
    with stored(run) as keep:
        measure_ceilings(so_far, keep=keep, listener=on_event)
    found = run.reported()
    if so_far.kept:
        with open_home(home()):  # marked as ours before anything is put there
            add_ceilings(home(), found.ceilings)
    return found


def _facts(run: Run) -> CalibrationFacts:
    return calibration_facts(run.calibrated, run.info.ident)


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


@dataclass(frozen=True, slots=True)
class Cores:
    """Which CPUs the two sides get."""

    driver: tuple[int, ...]
    server: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether both have to make do with the same."""
        return self.driver == self.server


def split_cores(cpus: Sequence[int], threads: int | None) -> Cores:
    """Deal the CPUs: one for each thread of the driver, the rest for the null server.

    Args:
        cpus: Those that this process may use.
        threads: Of the driver; None: half of the CPUs.

    Raises:
        PlanError: More threads than would leave a CPU for the null server.
    """
    if len(cpus) == 1:
        if threads not in (None, 1):
            raise PlanError(f"--threads is {threads}, there is 1 CPU")
        return Cores(tuple(cpus), tuple(cpus))
    wanted = len(cpus) // 2 if threads is None else threads
    if not 1 <= wanted < len(cpus):
        raise PlanError(
            f"--threads is {wanted}, allowed are 1 to {len(cpus) - 1}",
            "The null server needs a CPU of its own.",
        )
    return Cores(tuple(cpus[:wanted]), tuple(cpus[wanted:]))


def begin(
    workloads: Sequence[Workload],
    *,
    threads: int | None,
    rounds: int,
    window_s: float,
    kept: bool,
) -> Calibrated:
    """A calibration of which nothing is measured yet.

    Args:
        workloads: What is driven, without keying and thinking; they differ e.g. in their face.
        threads: Of the driver; None: one on each of half the CPUs.
        rounds: Windows for each workload.
        window_s: Length of a window.
        kept: Whether its ceilings are for later reports.

    Raises:
        PlanError: There are too few CPUs or connections for so many threads.
    """
    cores = split_cores(sorted(os.sched_getaffinity(0)), threads)
    for workload in workloads:
        if workload.connections < len(cores.driver):
            raise PlanError(
                f"{plural(workload.connections, 'connection')} for"
                f" {plural(len(cores.driver), 'thread')}",
                "Give every thread a connection, or name fewer with --threads.",
            )
    return Calibrated(
        tuple(workloads), rounds, window_s, cores.driver, cores.server, this_machine(),
        own_version(), time.time_ns(), kept,
    )  # fmt: skip


def measure_ceilings(
    so_far: Calibrated,
    *,
    keep: Callable[[Calibrated], None] = lambda _: None,
    listener: Listener = lambda _: None,
) -> Calibrated:
    """Measure the ceiling for each workload; rounds interleave them.

    Args:
        so_far: What is asked, and the windows that were measured before.
        keep: Gets all of it after each window.
        listener: Told what is measured next.

    Raises:
        DriveError: The driver or the null server failed, or a transaction did.
        KeyboardInterrupt: Ctrl-C; what was measured is kept.
    """
    keep(so_far)
    while not so_far.is_whole:
        before, index = divmod(len(so_far.measured), len(so_far.workloads))
        workload = so_far.workloads[index]
        listener(
            StepBegun(
                f"{workload.kind}, face {workload.face}: round {before + 1} of {so_far.rounds}"
            )
        )
        cores = Cores(so_far.driver_cpus, so_far.server_cpus)
        window = _numbers(*_round(workload, cores, so_far.window_s))
        so_far = replace(so_far, measured=(*so_far.measured, window))
        keep(so_far)
    return so_far


def _round(workload: Workload, cores: Cores, window_s: float) -> tuple[Driven, float | None]:
    protocol = Protocol(1, min(WARMUP_S, window_s), window_s, _DRAIN_S, False, 0.03, 0.95, Rung.D0)
    with null_server(workload, threads=len(cores.server), cpus=cores.server) as server:
        watch = _Watch(server)
        pinned = replace(workload, threads=len(cores.driver))
        driven = drive(server.connection, pinned, protocol, None, watch.take, Wishes(cores.driver))
    if driven.error or driven.errors:
        what = driven.error or driven.errors[0].example
        raise DriveError(f"a transaction failed against the null server: {what}")
    return driven, watch.wanted()


class _Watch:
    """Reads the null server's account while the window lasts."""

    def __init__(self, server: NullServer) -> None:
        self._server = server
        self._accounts: list[Account] = []

    def take(self, progress: DriveProgress) -> None:
        if progress.phase == "window" and (account := self._server.account()):
            self._accounts.append(account)

    def wanted(self) -> float | None:
        """Share of the time that the busiest thread ran or waited for a CPU."""
        if len(self._accounts) < 2:
            return None
        first, last = self._accounts[0], self._accounts[-1]
        pairs = zip(first.wanted_s, last.wanted_s, strict=True)
        return max(after - before for before, after in pairs) / (last.at_s - first.at_s)


def _numbers(driven: Driven, server_wanted: float | None) -> Round:
    client = driven.client
    if driven.transactions == 0:
        raise DriveError(f"no transaction came to its end in a window of {driven.window_s:g} s")
    assert driven.round_trips_per_transaction is not None, "our own driver tells"
    assert client.cpu_s is not None, "likewise"
    wanted = [
        cpu + wait for cpu, wait in zip(client.thread_cpu_s, client.thread_wait_s, strict=True)
    ]
    return Round(
        transactions=driven.transactions,
        round_trips=driven.round_trips_per_transaction * driven.transactions,
        window_s=driven.window_s,
        cpu_s=client.cpu_s,
        driver_wanted=min(1.0, max(wanted) / client.window_s),
        server_wanted=server_wanted,
    )


EXPERIMENT = Experiment(
    lambda run: run.calibrated.is_whole,
    {
        "html": lambda run: ceiling.render_html(_facts(run)),
        "md": lambda run: ceiling.render_md(_facts(run)),
        "json": lambda run: ceiling.render_json(_facts(run)),
    },
    lambda run: ceiling.summary(_facts(run)),
    resume,
)
