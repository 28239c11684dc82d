"""The drill that a report takes what disasters took from, where nobody names one.

It is the newest of this machine and this version of PostgreSQL whose run file lies in the same
folder: what a drill measured elsewhere is true elsewhere.
"""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
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
    idents = {path: _ident(path, info) for path in run_file.parent.glob("*.sqlite")}
    drills = sorted(((ident, path) for path, ident in idents.items() if ident), reverse=True)
    return next((found for ident, path in drills if (found := _losses(ident, path))), None)


def _ident(path: Path, info: RunInfo) -> str | None:
    """Of a drill of the same machine; None: it is none."""
    with suppress(PgdynoError, OSError):  # no run file, or of another pgdyno: nobody asked for it
        its = _info(path, path.stat().st_mtime_ns)
        if its.experiment == "drill" and _made_on(its) == _made_on(info):
            return its.ident
    return None


@lru_cache(maxsize=4096)
def _info(path: Path, _changed_ns: int) -> RunInfo:
    # Who looks at all runs of a folder opens each of its files once, not once for each run.
    with RunFile.read(path) as file:
        return file.info()


def _losses(ident: str, path: Path) -> Losses | None:
    with suppress(PgdynoError), RunFile.read(path) as file:
        drilled = file.found("drill", Drilled)
        return Losses(ident, drilled) if drilled is not None and drilled.cuts else None
    return None


def _made_on(info: RunInfo) -> tuple[object, ...]:
    major = int(info.build.version_num or 0) // 10_000
    return (major, *(getattr(info.host, name) for name in _MACHINE))
