"""What people read of a run: the Markdown report, the terminal's summary, the shape of the JSON."""

from __future__ import annotations

import json as json_text
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.run import analyse
from pgdyno.report import json, markdown, summary
from pgdyno.store import RunFile
from tests.data.miniature import write_miniature


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    path = write_miniature(tmp_path_factory.mktemp("run") / "run.sqlite")
    with RunFile.read(path) as run:
        return analyse(run)


def test_markdown(facts: Facts, snapshot: SnapshotAssertion) -> None:
    assert markdown.render(facts) == snapshot


@pytest.mark.parametrize("width", [100, 80])
def test_summary_fits_the_terminal(facts: Facts, width: int, snapshot: SnapshotAssertion) -> None:
    text = printed(facts, width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text, "a number was cut off"
    assert text == snapshot


def test_summary_of_a_run_that_was_stopped(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    path = write_miniature(
        tmp_path / "run.sqlite", invalid=(), failed=(3,), planned=(4, 5, 6, 7, 8, 9)
    )
    with RunFile.read(path) as run:
        assert printed(analyse(run), 100) == snapshot


def test_shape_of_the_json(snapshot: SnapshotAssertion) -> None:
    assert json_text.dumps(json.schema(), indent=1) == snapshot


def printed(facts: Facts, width: int) -> str:
    """The summary as a terminal without colours shows it, without trailing blanks."""
    console = Console(file=StringIO(), width=width, no_color=True, force_terminal=False)
    console.print(summary.render(facts))
    assert isinstance(console.file, StringIO)
    return "\n".join(line.rstrip() for line in console.file.getvalue().splitlines())
