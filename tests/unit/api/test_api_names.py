"""The names that `import pgdyno` offers: all there, documented, and imported when asked for."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import pgdyno
from pgdyno import api


@pytest.mark.parametrize("name", pgdyno.__all__)
def test_a_name_stands_for_something_documented(name: str) -> None:
    found = getattr(pgdyno, name)

    assert inspect.getdoc(found)
    if name != "PgdynoError":
        assert found is getattr(api, name)


def test_there_are_few_enough_names_to_remember() -> None:
    assert len(pgdyno.__all__) <= 20
    assert set(pgdyno.__all__) <= set(dir(pgdyno))


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
