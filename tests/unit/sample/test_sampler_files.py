"""A sampler is one file: whoever records names none of them, and each says what it reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pgdyno
from pgdyno.model.by_location import modules_of
from pgdyno.sample import samplers
from pgdyno.sample.sampler import Missing, Sampler, Snapshot, Subject
from pgdyno.sample.samplers import samplers_of

ROOT = Path(pgdyno.__file__).parent
UNITS = {"1", "s", "B", "Hz", "°C", "CPUs", "B/s"}
NAMES = {path.stem for path in (ROOT / "sample/samplers").glob("*.py")} - {"__init__"}


def imported(path: Path) -> Iterator[str]:
    """The full names of what a module imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{one.name}" for one in node.names)


def test_nobody_imports_a_sampler_by_its_name() -> None:
    assert len(NAMES) > 20
    named = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in ROOT.rglob("*.py")
        for name in imported(path)
        if name.startswith("pgdyno.sample.samplers.") and name.split(".")[3] in NAMES
    }
    assert named == set()


def test_every_file_has_its_source_and_a_sampler() -> None:
    found = {module.__name__.rpartition(".")[2]: module for module in modules_of(samplers.__name__)}
    assert found.keys() == NAMES
    for name, module in found.items():
        assert callable(module.sampler), name
        assert module.__doc__, name


def test_those_of_a_host_have_units_a_set_and_a_budget() -> None:
    found = [one for one in samplers_of(Subject(telemetry="full")) if not isinstance(one, Missing)]
    assert found
    for one in found:
        assert one.telemetry in ("default", "full"), one.name
        assert one.budget_us > 0, one.name
        if isinstance(one, Sampler):
            assert {column.unit for column in one.columns} <= UNITS, one.name
            assert len({column.name for column in one.columns}) == len(one.columns), one.name
        elif isinstance(one, Snapshot):
            assert one.columns, one.name
