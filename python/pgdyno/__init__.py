"""pgdyno, a dynamometer for PostgreSQL: staged tuning, measured, with statistics.

What the command line does, from Python; see `docs/notebooks/python.md`. Calls raise `PgdynoError`,
print nothing and never exit. Names are imported when they are asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgdyno.api import (
        Asked,
        Data,
        Plan,
        Run,
        Server,
        Table,
        bench,
        calibrate,
        check,
        knee,
        knobs,
        lint,
        load,
        load_plan,
        loaded,
        plans,
        resume,
        run,
        storage,
    )
    from pgdyno.model.errors import PgdynoError

__version__ = "0.1.0"
__all__ = [
    "Asked", "Data", "PgdynoError", "Plan", "Run", "Server", "Table", "bench", "calibrate",
    "check", "knee", "knobs", "lint", "load", "load_plan", "loaded", "plans", "resume", "run",
    "storage",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the name stands for
    if name == "PgdynoError":
        from pgdyno.model.errors import PgdynoError  # noqa: PLC0415

        return PgdynoError
    if name in __all__:
        from pgdyno import api  # noqa: PLC0415

        return getattr(api, name)
    raise AttributeError(f"pgdyno has no {name}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
