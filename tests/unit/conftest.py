"""The facts of a made-up run, computed once for all tests that only read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature


@pytest.fixture(scope="session")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    """Three stages, three rounds; trial 5, async-commit in round 2, is invalid."""
    return analysed(tmp_path_factory.mktemp("run") / "run.sqlite")


def analysed(path: Path, **options: object) -> Facts:
    """The facts of a miniature written with these options."""
    with RunFile.read(write_miniature(path, **options)) as run:  # type: ignore[arg-type]
        return analyse(run)
