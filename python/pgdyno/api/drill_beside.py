"""The drill that a report takes what disasters took from, where nobody names one.

It is the newest of this machine and this version of PostgreSQL whose run file lies in the same
folder: what a drill measured elsewhere is true elsewhere.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.analysis.judged import plan_in
from pgdyno.analysis.losses import Losses
from pgdyno.model.drill import Drilled
from pgdyno.model.errors import PgdynoError
from pgdyno.model.run import RunInfo
from pgdyno.store.run_file import RunFile

_MACHINE = ("cpu_model", "cpus", "memory_bytes", "file_system")


def drill_beside(run_file: Path, info: RunInfo) -> Losses | None:
    """What was rehearsed on the machine of a run; None: nothing, or the server is not ours.

    Args:
        run_file: Of the run; only its folder is read.
        info: Of the run.

    Raises:
        PlanError: No plan was run.
    """
    if plan_in(info).target.kind == "running":
        return None
    found = [one for path in run_file.parent.glob("*.sqlite") if (one := _drill(path, info))]
    return max(found, key=lambda one: one.ident, default=None)


def _drill(path: Path, info: RunInfo) -> Losses | None:
    try:
        with RunFile.read(path) as file:
            its = file.info()
            if its.experiment != "drill" or _made_on(its) != _made_on(info):
                return None
            drilled = file.found("drill", Drilled)
    except PgdynoError:  # of another pgdyno, or no run file at all: nobody asked for it
        return None
    return Losses(its.ident, drilled) if drilled is not None and drilled.cuts else None


def _made_on(info: RunInfo) -> tuple[object, ...]:
    major = int(info.build.version_num or 0) // 10_000
    return (major, *(getattr(info.host, name) for name in _MACHINE))
