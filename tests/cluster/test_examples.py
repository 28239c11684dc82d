"""Examples of the library's docstrings, as an interpreter carries them out."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

from pgdyno import api

pytestmark = pytest.mark.cluster


def examples() -> dict[str, doctest.DocTest]:
    """Every docstring below `pgdyno.api` that shows one, by its name."""
    found: dict[str, doctest.DocTest] = {}
    for info in walk_packages(api.__path__, "pgdyno.api."):
        module = import_module(info.name)
        for one in doctest.DocTestFinder(exclude_empty=True).find(module):
            if one.examples:
                found[one.name] = one
    return found


def shown_in_source() -> int:
    """Docstrings with an example, counted in the text."""
    files = Path(api.__path__[0]).rglob("*.py")
    return sum(file.read_text().count("    Example:\n") for file in files)


EXAMPLES = examples()


def test_all_examples_are_found() -> None:
    assert len(EXAMPLES) == shown_in_source() >= 4


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.wide
def test_an_example_is_true(
    name: str, folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    said: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(EXAMPLES[name], out=said.append)
    assert outcome.attempted >= 2
    assert outcome.failed == 0, "".join(said)
