"""Faults that a drill plants are found whatever its stage does with commits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import pgdyno
from tests.cluster.test_drill import plan

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.wide,
    pytest.mark.xdist_group("drill"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount"),
]
CRASH = pgdyno.DrillDesign(("crash",), cuts=1, load_s=2)
LATE: dict[str, object] = {
    "name": "late",
    "settings": {"synchronous_commit": "off", "wal_writer_delay": "10s"},
}


@pytest.mark.usefixtures("home_env")
def test_also_where_commits_are_flushed_late(folder: Path) -> None:
    facts = pgdyno.drill(plan(LATE), design=CRASH, out=folder / "run.sqlite").drill
    assert len(facts.controls) == 5
    assert [one for one in facts.controls if one.found is None] == []
