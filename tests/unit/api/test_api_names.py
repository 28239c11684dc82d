"""The names that `import pgdyno` offers: all there, documented, and imported when asked for."""

from __future__ import annotations

import inspect
import subprocess
import sys
from dataclasses import is_dataclass
from pathlib import Path
from pkgutil import iter_modules

import pytest

import pgdyno
from pgdyno import api
from pgdyno.cli.app import COMMANDS

NAMES = (*pgdyno.__all__, *pgdyno.RECORDS)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_stands_for_something_documented(name: str) -> None:
    found = getattr(pgdyno, name)

    assert inspect.getdoc(found)
    if name != "PgdynoError":
        assert found is getattr(api, name)


def test_there_are_few_enough_names_to_remember() -> None:
    apart = {
        "Guard",
        "PgdynoError",
        "Run",
        "Server",
        "import_results",
        "load_plan",
        "loaded",
        "machine",
        "measure",
        "propose",
    }  # fmt: skip  `import` and `next` are Python's own words
    assert set(pgdyno.__all__) - set(COMMANDS) == apart, "a name is that of its command"
    assert set(NAMES) <= set(dir(pgdyno))


def test_names_are_calls_and_what_they_are_asked_with_is_apart() -> None:
    assert not [name for name in pgdyno.__all__ if is_dataclass(getattr(pgdyno, name))]
    assert all(is_dataclass(getattr(pgdyno, name)) for name in pgdyno.RECORDS)


def test_no_name_is_that_of_a_module_which_an_import_would_put_in_its_place() -> None:
    for package in (pgdyno, api):
        modules = {one.name for one in iter_modules(package.__path__)}
        offered = set(NAMES) | (set(api.__all__) if package is api else set())
        assert modules & offered <= {"builds", "machine"}, "parts of several calls are modules"


@pytest.mark.parametrize("module", [pgdyno, api])
def test_what_is_not_there_is_an_attribute_error(module: object) -> None:
    with pytest.raises(AttributeError, match="has no nonsense"):
        module.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_importing_the_package_imports_nothing_large() -> None:
    program = "import sys, pgdyno; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert {"numpy", "pydantic", "rich", "psycopg"}.isdisjoint(done.stdout.split())


def test_whoever_imports_the_package_gets_its_types() -> None:
    assert (Path(pgdyno.__file__).parent / "py.typed").is_file(), "PEP 561"
