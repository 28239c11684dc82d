"""What a drill plants is found, whatever its stage does with commits; its time may end."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

import pgdyno
from tests.cluster.test_drill import DEBIAN, plan

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
    assert len(facts.controls) == 7
    assert [one for one in facts.controls if one.found is None] == []


@pytest.mark.long
@pytest.mark.usefixtures("home_env")
def test_also_where_pages_have_no_checksums(folder: Path) -> None:
    load = {"kind": "tpcc", "warehouses": 1, "connections": 4}
    planned = plan(LATE, workload=load, target=DEBIAN)
    facts = pgdyno.drill(planned, design=CRASH, out=folder / "run.sqlite").drill
    assert len(facts.controls) == 7
    assert [one for one in facts.controls if one.found is None] == []


@pytest.mark.long
@pytest.mark.same_machine
@pytest.mark.usefixtures("home_env")
def test_a_drill_ends_with_its_minutes_and_goes_on_when_it_is_resumed(folder: Path) -> None:
    out = folder / "run.sqlite"
    design = replace(CRASH, cuts=3, minutes=0.1)
    run = pgdyno.drill(plan(LATE, {**LATE, "name": "later"}), design=design, out=out)
    assert [(one.stage, one.number) for one in run.drilled.cuts] == [("late", 1), ("later", 1)]
    assert not run.is_whole
    assert "The drill made 2 of 6 cuts: the 0.1 min that it had were over." in run.drill.doubts[-1]

    again = pgdyno.resume(out)
    made = [(one.stage, one.number) for one in again.drilled.cuts]
    assert sorted(made) == [("late", 1), ("late", 2), ("later", 1), ("later", 2)]
