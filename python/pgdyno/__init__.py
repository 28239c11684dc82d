"""pgdyno, a dynamometer for PostgreSQL: staged tuning, measured, with statistics.

What the command line does, from Python; see `docs/notebooks/python.md`. Calls raise `PgdynoError`,
print nothing and never exit; a notebook shows how far they are. Names are imported when they are
asked for: those of `__all__` do something, those of `RECORDS` say what is asked for, or are what
calls return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.model.version import VERSION

if TYPE_CHECKING:
    from pgdyno import api as _api
    from pgdyno.api import Asked as Asked
    from pgdyno.api import ClimbLimits as ClimbLimits
    from pgdyno.api import Data as Data
    from pgdyno.api import Design as Design
    from pgdyno.api import Diagnosis as Diagnosis
    from pgdyno.api import DrillDesign as DrillDesign
    from pgdyno.api import FirstPlan as FirstPlan
    from pgdyno.api import Fleet as Fleet
    from pgdyno.api import (
        Guard,
        Run,
        Server,
        aa,
        bench,
        calibrate,
        check,
        climb,
        compare,
        diagnose,
        drill,
        export,
        fleet,
        history,
        import_results,
        knee,
        knobs,
        lint,
        load,
        load_plan,
        loaded,
        measure,
        plans,
        propose,
        prove,
        resume,
        run,
        storage,
        wal,
    )
    from pgdyno.api import GuardLimits as GuardLimits
    from pgdyno.api import Plan as Plan
    from pgdyno.api import Search as Search
    from pgdyno.api import Table as Table
    from pgdyno.api import Windows as Windows
    from pgdyno.api import Wish as Wish
    from pgdyno.model.errors import PgdynoError

    builds, machine = _api.builds, _api.machine

__version__ = VERSION
__all__ = [
    "Guard", "PgdynoError", "Run", "Server", "aa", "bench", "builds", "calibrate", "check", "climb",
    "compare", "diagnose", "drill", "export", "fleet", "history", "import_results", "knee", "knobs",
    "lint", "load", "load_plan", "loaded", "machine", "measure", "plans", "propose", "prove",
    "resume", "run", "storage", "wal",
]  # fmt: skip
RECORDS = (
    "Asked", "ClimbLimits", "Data", "Design", "Diagnosis", "DrillDesign", "FirstPlan", "Fleet",
    "GuardLimits", "Plan", "Search", "Table", "Windows", "Wish",
)  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the name stands for
    if name == "PgdynoError":
        from pgdyno.model.errors import PgdynoError  # noqa: PLC0415

        return PgdynoError
    if name in __all__ or name in RECORDS:
        from pgdyno import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"pgdyno has no {name}")


def __dir__() -> list[str]:
    return [*__all__, *RECORDS, "__version__"]
