"""A page is made of facts: no module of the report takes a record that a run file holds."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import pgdyno.report

FOLDER = Path(next(iter(pgdyno.report.__path__)))
HELD = {"Calibrated", "Probed", "RunInfo", "Searched", "TrialRecord", "TrialResult", "RunFile"}


def imported(source: str) -> set[str]:
    return {
        alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("module", sorted(FOLDER.rglob("*.py")), ids=lambda path: path.stem)
def test_no_module_of_the_report_takes_what_a_run_file_holds(module: Path) -> None:
    assert not imported(module.read_text(encoding="utf-8")) & HELD
