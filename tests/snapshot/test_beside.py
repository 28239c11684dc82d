"""What people read where stages of one run, and of two, stand beside each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import pgdyno
from tests.data.imported import FOLDER
from tests.data.miniature import CHARACTERS, write_miniature


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four days of a plan, seen from where it lies."""
    for days, factor in enumerate((1.0, 1.03, 0.98, 1.25), 1):
        slower = tuple(replace(one, nopm=one.nopm * factor) for one in CHARACTERS)
        path = tmp_path / "runs" / f"{days}.sqlite"
        write_miniature(path, days=days, invalid=(), characters=slower)
    monkeypatch.chdir(tmp_path)
    return Path("runs")


def test_stages_of_one_run(runs: Path, snapshot: SnapshotAssertion) -> None:
    assert pgdyno.compare(runs / "1.sqlite").text() == snapshot


def test_runs_of_two_days(runs: Path, snapshot: SnapshotAssertion) -> None:
    subjects = [f"{runs / '1.sqlite'}:tuned", f"{runs / '4.sqlite'}:tuned"]
    assert pgdyno.compare(*subjects).text() == snapshot(name="noise not known")
    assert pgdyno.compare(*subjects, runs=runs).text() == snapshot(name="noise known")


def test_why_a_run_that_was_broken_off_decides_nothing_is_said_once(tmp_path: Path) -> None:
    run = write_miniature(tmp_path / "run.sqlite", invalid=(), planned=tuple(range(4, 10)))
    said = [
        line.partition("because ")[2] or line for line in pgdyno.compare(run).text().split("\n")
    ]
    told = [line.strip() for line in said if "an interval needs 2" in line]
    assert told == ["1 round has both stages, an interval needs 2."] * 2, "once of each stage"


def test_a_stage_beside_another_tool(runs: Path, snapshot: SnapshotAssertion) -> None:
    found = pgdyno.compare(
        f"{runs / '1.sqlite'}:tuned", FOLDER / "hammerdb-4.9-cli.txt", ratio="nopm_committed"
    )
    assert found.text() == snapshot
