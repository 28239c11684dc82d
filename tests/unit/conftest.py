"""The facts of a made-up run, computed once for all tests that only read them; a home."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature
from tests.reachable import reachable_folder


@pytest.fixture(scope="session")
def home_apart() -> Iterator[Path]:
    """A home for tests that have no server."""
    yield from reachable_folder("home")


@pytest.fixture(autouse=True)
def _no_home_of_others(home_apart: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test without a server looks into the machine's own home, where a pgdyno may be at work."""
    monkeypatch.setenv("PGDYNO_HOME", str(home_apart))


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Three stages, three rounds; trial 5, async-commit in round 2, is invalid."""
    return analysed(tmp_path_factory.mktemp("run") / "run.sqlite")


def analysed(path: Path, **options: object) -> Facts:
    """The facts of a miniature written with these options."""
    with RunFile.read(write_miniature(path, **options)) as run:  # type: ignore[arg-type]
        return analyse(run)
