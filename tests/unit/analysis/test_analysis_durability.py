"""Where a stage stands before anything was read back: as far as is known, never better."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.durability import standing
from pgdyno.model.durability import Durability, Loss
from pgdyno.model.settings import Rung
from tests.data.miniature import CHARACTERS

LOST = Loss(Rung.D2, "synchronous_commit = off", "a crash may lose …", "server", "a plan")


@pytest.mark.parametrize(
    ("planned", "rung"),
    [
        (None, "D0"),
        (Durability(), "D0"),
        (Durability(not_known=("the storage of a running server",)), "D?"),
        (Durability((LOST,), ("the storage of a running server",)), "D2"),
    ],
)
def test_nothing_is_called_safe_that_could_not_be_looked_at(
    planned: Durability | None, rung: str
) -> None:
    lowest = Rung.D0 if planned is None else planned.lowest
    stage = replace(CHARACTERS[0].stage, durability=planned, rung=lowest)

    assert standing(stage, ()).rung == rung
