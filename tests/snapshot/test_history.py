"""What people read of a folder of runs: lines in the order of time, a change, a limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from syrupy.assertion import SnapshotAssertion

import pgdyno
from tests.data.miniature import CHARACTERS, write_miniature


def test_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    factors = (1.0, 1.02, 0.99, 1.01, 0.98, 0.8, 0.79, 0.81, 0.8, 0.78)
    for days, factor in enumerate(factors, 1):
        stages = (replace(CHARACTERS[0], nopm=CHARACTERS[0].nopm * factor),)
        failed = (2,) if days == 4 else ()
        path = tmp_path / "runs" / f"{days:02}.sqlite"
        write_miniature(path, days=days, invalid=(), failed=failed, characters=stages)
    (tmp_path / "runs" / "notes.sqlite").write_text("mine")
    monkeypatch.chdir(tmp_path)

    found = pgdyno.history("runs", fail_below=0.95, against="runs/01.sqlite")
    assert found.text() == snapshot
