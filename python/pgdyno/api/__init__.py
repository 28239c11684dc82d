"""What the command line does, as functions: they raise our errors, never print, never exit.

Names are imported when they are asked for: what reports need takes longer than a small load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgdyno.api.asked import Asked
    from pgdyno.api.databases import (
        LOADED_AT,
        Checked,
        Data,
        Database,
        Loaded,
        Needs,
        check,
        connection_to,
        estimate_load,
        export,
        load,
        load_files,
    )
    from pgdyno.api.plans import Plan, Preview, load_plan
    from pgdyno.api.probing import storage, storage_cost
    from pgdyno.api.runs import Run, resume, run
    from pgdyno.api.servers import Server, loaded
    from pgdyno.api.settings import Linted, knobs, lint
    from pgdyno.api.table import Table
    from pgdyno.api.windows import Benched, bench, calibrate, calibration_file, knee
    from pgdyno.drive.driver import Driven
    from pgdyno.experiment.calibrate import WARMUP_S
    from pgdyno.experiment.knee import Windows
    from pgdyno.loader.copy import Intent

_WHERE = {
    "asked": ("Asked",),
    "databases": (
        "LOADED_AT", "Checked", "Data", "Database", "Loaded", "Needs", "check", "connection_to",
        "estimate_load", "export", "load", "load_files",
    ),
    "plans": ("Plan", "Preview", "load_plan"),
    "runs": ("Run", "resume", "run"),
    "servers": ("Server", "loaded"),
    "settings": ("Linted", "knobs", "lint"),
    "probing": ("storage", "storage_cost"),
    "table": ("Table",),
    "windows": ("Benched", "bench", "calibrate", "calibration_file", "knee"),
}  # fmt: skip
_MODULES = {name: f"pgdyno.api.{module}" for module, names in _WHERE.items() for name in names}
_MODULES |= {
    "WARMUP_S": "pgdyno.experiment.calibrate",
    "Windows": "pgdyno.experiment.knee",
    "Driven": "pgdyno.drive.driver",
    "Intent": "pgdyno.loader.copy",
}

__all__ = [
    "LOADED_AT", "WARMUP_S", "Asked", "Benched", "Checked", "Data", "Database", "Driven", "Intent",
    "Linted", "Loaded", "Needs", "Plan", "Preview", "Run", "Server", "Table", "Windows", "bench",
    "calibrate", "calibration_file", "check", "connection_to", "estimate_load", "export", "knee",
    "knobs", "lint", "load", "load_files", "load_plan", "loaded", "resume", "run", "storage",
    "storage_cost",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the name stands for
    if name not in _MODULES:
        raise AttributeError(f"pgdyno.api has no {name}")
    return getattr(import_module(_MODULES[name]), name)
