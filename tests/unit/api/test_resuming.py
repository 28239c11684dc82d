"""What is resumed though nothing is left of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import pgdyno
from pgdyno.analysis.judged import plan_in
from pgdyno.api.runs import Run
from pgdyno.model.run import RunInfo
from pgdyno.store.run_file import RunFile
from tests.data import drills, proofs
from tests.data.miniature import write_miniature


@pytest.mark.same_machine
@pytest.mark.parametrize("kind", ["drill", "prove"])
def test_of_a_whole_one_the_page_is_written_and_no_server_opened(tmp_path: Path, kind: str) -> None:
    """No folder of clusters is made, nor is the machine asked for, which is another one here."""
    plan = plan_in(Run(write_miniature(tmp_path / "run.sqlite")).info)
    found: tuple[RunInfo, object] = (
        (drills.INFO, drills.drill(plan)) if kind == "drill" else (proofs.INFO, proofs.proof(plan))
    )
    path = tmp_path / "whole.sqlite"
    with RunFile.create(path, found[0], ()) as file:
        file.put_found(kind, found[1])  # type: ignore[arg-type]
    before = path.read_bytes()

    run = pgdyno.resume(path)

    assert run.is_whole
    assert path.with_suffix(".html").exists()
    assert path.read_bytes() == before
