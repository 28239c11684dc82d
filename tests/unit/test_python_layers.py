"""What each package uses is exactly what is written here: no more, and no leave that nobody takes.

`lint-imports` has the order of the layers and what none may reach by way of another.
"""

from __future__ import annotations

from pathlib import Path

import grimp
import pytest

import pgdyno

USES = {
    "__main__": "cli",
    "cli": "api catalog model",
    "api": "analysis builder catalog diagnosis disk drills drive folders guard host imports"
    " intervention linter live loader model pages plan probe report shell stats store target trial"
    " workload",
    "drills": "disk drive folders guard loader model pages session shell target trial",
    "trial": "analysis catalog drive folders guard intervention loader model pages plan profiler"
    " sample session shell stats store target workload",
    "live": "analysis model report shell store",
    "host": "access catalog folders linter locks model shell target",
    "guard": "access folders locks model pages session shell target",
    "builder": "access drive folders loader model plan shell target",
    "profiler": "folders model sample shell",
    "target": "access catalog folders model mounts plan preload session shell",
    "loader": "core folders model plan session workload",
    "drive": "core folders model plan shell workload",
    "disk": "core folders model mounts preload shell",
    "sample": "model",
    "probe": "access folders model shell",
    "intervention": "model preload shell",
    "pages": "core folders model",
    "report": "analysis imports model plan",
    "diagnosis": "analysis catalog model",
    "analysis": "catalog imports model plan stats store",
    "imports": "model plan",
    "stats": "model",
    "store": "access core folders model plan",
    "mounts": "access folders shell",
    "preload": "folders model shell",
    "folders": "access locks model shell",
    "session": "model",
    "shell": "access model",
    "access": "model",
    "locks": "",
    "linter": "catalog model plan",
    "workload": "catalog core model plan",
    "plan": "catalog model",
    "catalog": "core model",
    "core": "_core model",
    "model": "",
}


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph(pgdyno.__name__)


def package_of(module: str) -> str:
    """Its package; what `pgdyno` itself offers is its core."""
    return "_core" if module == pgdyno.__name__ else module.split(".")[1]


@pytest.mark.parametrize("package", USES)
def test_a_package_uses_what_is_written_here(graph: grimp.ImportGraph, package: str) -> None:
    name = f"{pgdyno.__name__}.{package}"
    used = {
        package_of(imported)
        for module in {name, *graph.find_descendants(name)}
        for imported in graph.find_modules_directly_imported_by(module)
    }
    assert used - {package} == set(USES[package].split())


def test_every_package_has_its_line() -> None:
    there = {
        path.stem
        for path in Path(pgdyno.__file__).parent.iterdir()
        if (path / "__init__.py").exists() or path.suffix == ".py"
    }
    assert there - {"__init__"} == set(USES)
