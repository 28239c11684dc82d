"""The ceiling of this machine: what the driver reaches against a server that does nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

from pgdyno.analysis.calibration import calibration_facts
from pgdyno.analysis.calibration_facts import CalibrationFacts
from pgdyno.api.experiments import Experiment
from pgdyno.api.notebook_line import with_line
from pgdyno.api.runs import Run
from pgdyno.api.storing import Begun, begun, going_on, stored
from pgdyno.catalog.contract import default, require_release
from pgdyno.experiment import calibrate as calibrating
from pgdyno.experiment.progress import Listener
from pgdyno.model.calibration import Calibrated
from pgdyno.model.errors import PlanError
from pgdyno.model.workload import CONNECTIONS, Face, Pgbench, Tpcc, Workload, WorkloadKind
from pgdyno.report import ceiling
from pgdyno.store.calibration import add_ceilings, calibration_path
from pgdyno.target.home import home, open_home

_SEED: int = default("TpccSpec", "seed")  # ceilings of the same requests can be compared
_FACES: tuple[Face, ...] = get_args(Face)


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
        PlanError: The null server has no answers to that.
        DriveError: The driver failed. What was measured until then is kept.
        Interrupted: Ctrl-C; the same.
    """
    require_release()
    one = _calibrated(workload, connections)
    workloads = [replace(one, face=each) for each in _faces(workload, faces)]
    so_far = calibrating.begin(
        workloads, threads=threads, rounds=rounds, window_s=seconds, kept=keep
    )
    run = begun("calibration", "calibration", command, out)
    return _measured(run, so_far, on_event)


def resume(run: Run, _again: bool, on_event: Listener) -> Run:
    """Go on with a calibration after its last window; see `api.resume`."""
    return _measured(going_on(run), run.calibrated, on_event)


def calibration_file() -> Path:
    """Where ceilings are kept."""
    return calibration_path(home())


def _measured(run: Begun, so_far: Calibrated, on_event: Listener) -> Run:
    with stored(run) as keep:
        calibrating.calibrate(so_far, keep=keep, listener=on_event)
    found = run.reported()
    if so_far.kept and not so_far.is_whole:  # what was whole before is kept already
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
