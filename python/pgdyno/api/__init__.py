"""What the command line does, as functions: they raise our errors, never print, never exit.

Names are imported when they are asked for: what reports need takes longer than a small load.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgdyno.api import builds, machine
    from pgdyno.api.asked import Asked
    from pgdyno.api.comparing import compare
    from pgdyno.api.configuration import Form
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
    from pgdyno.api.diagnosing import Diagnosis, diagnose
    from pgdyno.api.experiments.aa import AA_ROUNDS, aa
    from pgdyno.api.experiments.calibration import calibrate, calibration_file
    from pgdyno.api.experiments.climb import climb, climb_preview
    from pgdyno.api.experiments.drill import DISASTER_NAMES, drill, drill_preview
    from pgdyno.api.experiments.knee import knee
    from pgdyno.api.experiments.plan import run
    from pgdyno.api.experiments.prove import PROBE_NAMES, prove
    from pgdyno.api.experiments.stage import measure
    from pgdyno.api.experiments.storage import require_storage_free, storage, storage_cost
    from pgdyno.api.first_plan import FirstPlan
    from pgdyno.api.fleets import fleet
    from pgdyno.api.guard import Guard
    from pgdyno.api.imports import IMPORTED_TOOLS, ImportedResults, import_results
    from pgdyno.api.over_time import history
    from pgdyno.api.planning import Plan, Preview, load_plan, plans
    from pgdyno.api.proposing import Proposal, propose
    from pgdyno.api.resuming import resume
    from pgdyno.api.runs import Format, Run, written_as
    from pgdyno.api.servers import Server, loaded
    from pgdyno.api.settings import LINTED_KINDS, LINTED_MAJORS, Linted, knob, knobs, lint
    from pgdyno.api.table import Table
    from pgdyno.api.wal_window import wal
    from pgdyno.api.windows import Benched, bench
    from pgdyno.drive.driver import Driven
    from pgdyno.live.address import Address
    from pgdyno.live.audience import Audience
    from pgdyno.live.run_progress import PHASES, RunProgress, driving_text, loading_text
    from pgdyno.loader.copy import Intent
    from pgdyno.model.climb import ClimbLimits
    from pgdyno.model.drill import DrillDesign
    from pgdyno.model.fleet import Fleet
    from pgdyno.model.floor import Wish
    from pgdyno.model.guard import GuardLimits
    from pgdyno.model.knee import Search, Windows
    from pgdyno.model.pooler import POOLED
    from pgdyno.model.proof import Design

_WHERE = {
    "asked": ("Asked",),
    "comparing": ("compare",),
    "configuration": ("Form",),
    "databases": (
        "LOADED_AT", "Checked", "Data", "Database", "Loaded", "Needs", "check",
        "connection_to", "estimate_load", "export", "load", "load_files",
    ),
    "diagnosing": ("Diagnosis", "diagnose"),
    "experiments.aa": ("AA_ROUNDS", "aa"),
    "experiments.calibration": ("calibrate", "calibration_file"),
    "experiments.climb": ("climb", "climb_preview"),
    "experiments.drill": ("DISASTER_NAMES", "drill", "drill_preview"),
    "experiments.knee": ("knee",),
    "experiments.plan": ("run",),
    "experiments.prove": ("PROBE_NAMES", "prove"),
    "experiments.stage": ("measure",),
    "experiments.storage": ("require_storage_free", "storage", "storage_cost"),
    "first_plan": ("FirstPlan",),
    "fleets": ("fleet",),
    "guard": ("Guard",),
    "imports": ("IMPORTED_TOOLS", "ImportedResults", "import_results"),
    "over_time": ("history",),
    "planning": ("Plan", "Preview", "load_plan", "plans"),
    "proposing": ("Proposal", "propose"),
    "resuming": ("resume",),
    "runs": ("Format", "Run", "written_as"),
    "servers": ("Server", "loaded"),
    "settings": ("LINTED_KINDS", "LINTED_MAJORS", "Linted", "knob", "knobs", "lint"),
    "table": ("Table",),
    "wal_window": ("wal",),
    "windows": ("Benched", "bench"),
}  # fmt: skip
_MODULES = {name: f"pgdyno.api.{module}" for module, names in _WHERE.items() for name in names}
_MODULES |= {
    "ClimbLimits": "pgdyno.model.climb",
    "Design": "pgdyno.model.proof",
    "DrillDesign": "pgdyno.model.drill",
    "Fleet": "pgdyno.model.fleet",
    "GuardLimits": "pgdyno.model.guard",
    "POOLED": "pgdyno.model.pooler",
    "Search": "pgdyno.model.knee",
    "Windows": "pgdyno.model.knee",
    "Wish": "pgdyno.model.floor",
    "Address": "pgdyno.live.address",
    "Audience": "pgdyno.live.audience",
    "PHASES": "pgdyno.live.run_progress",
    "RunProgress": "pgdyno.live.run_progress",
    "loading_text": "pgdyno.live.run_progress",
    "driving_text": "pgdyno.live.run_progress",
    "Driven": "pgdyno.drive.driver",
    "Intent": "pgdyno.loader.copy",
}

_PARTS = ("builds", "machine")
"""Modules of several calls on one thing."""

__all__ = [
    "AA_ROUNDS", "DISASTER_NAMES", "IMPORTED_TOOLS", "LINTED_KINDS", "LINTED_MAJORS", "LOADED_AT",
    "PHASES", "POOLED", "PROBE_NAMES", "Address", "Asked", "Audience", "Benched", "Checked",
    "ClimbLimits", "Data", "Database", "Design", "Diagnosis", "DrillDesign", "Driven", "FirstPlan",
    "Fleet", "Form", "Format", "Guard", "GuardLimits", "ImportedResults", "Intent", "Linted",
    "Loaded", "Needs", "Plan", "Preview", "Proposal", "Run", "RunProgress", "Search", "Server",
    "Table", "Windows", "Wish", "aa", "bench", "builds", "calibrate", "calibration_file", "check",
    "climb", "climb_preview", "compare", "connection_to", "diagnose", "drill", "drill_preview",
    "driving_text", "estimate_load", "export", "fleet", "history", "import_results", "knee", "knob",
    "knobs", "lint", "load", "load_files", "load_plan", "loaded", "loading_text", "machine",
    "measure", "plans", "propose", "prove", "require_storage_free", "resume", "run", "storage",
    "storage_cost", "wal", "written_as",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401  whatever the name stands for
    if name in _PARTS:
        return import_module(f"pgdyno.api.{name}")
    if name not in _MODULES:
        raise AttributeError(f"pgdyno.api has no {name}")
    return getattr(import_module(_MODULES[name]), name)
