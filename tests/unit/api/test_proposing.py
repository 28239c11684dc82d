"""What is asked of a proposal must be there: its rung, its stage."""

from __future__ import annotations

from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.errors import PlanError
from tests.data.miniature import write_miniature


@pytest.mark.parametrize(
    ("asked", "fact"),
    [
        ({"lowest_rung": "D9"}, "no rung is called 'D9'"),
        ({"stage": "none"}, "no stage is called 'none', there are initdb, tuned and async-commit"),
    ],
)
def test_what_is_not_there_is_refused(asked: dict[str, str], fact: str, tmp_path: Path) -> None:
    path = write_miniature(tmp_path / "run.sqlite")
    with pytest.raises(PlanError, match=fact):
        pgdyno.propose(path, **asked)  # type: ignore[arg-type]
