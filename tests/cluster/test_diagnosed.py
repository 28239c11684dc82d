"""Bottlenecks planted on a real server are named first, and a paced load has none.

What is planted is so large that no neighbour on a busy machine comes near it: a client that
computes for milliseconds, a row that is held for longer than a flush of any device takes, a
device of a few writes a second.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import pgdyno
from pgdyno.analysis.diagnosis_facts import StageDiagnosis
from pgdyno.model.errors import PlanError
from pgdyno.model.settings import Rung
from tests.cluster.planted import CGROUPS
from tests.cluster.plants import UPDATE, Company, Side, computing, holding, limited, reading

pytestmark = pytest.mark.cluster
MAY_LIMIT = os.geteuid() == 0 and (CGROUPS / "blkio").is_dir()
LIMITS = pytest.mark.skipif(not MAY_LIMIT, reason="control groups of version 1 are root's to make")

SCRIPTS = {
    "update.sql": UPDATE,
    "hold.sql": holding(100),
    "compute.sql": computing(4000),
    "read.sql": reading(),
}
STAGES = {
    "row": {"file": ["hold.sql"], "connections": 8},
    "client": {"file": ["compute.sql"], "connections": 4, "threads": 1},
    "paced": {"file": ["read.sql"], "connections": 4, "arrivals": {"rate": 100}},
}


def plan(folder: Path, stages: dict[str, dict[str, Any]]) -> dict[str, Any]:
    for name, text in SCRIPTS.items():
        (folder / name).write_text(text)
    return {
        "name": "diagnosed",
        "question": "What is the limit?",
        "workload": {"kind": "script", "data": "tpcb", "scale": 1, "file": ["read.sql"],
                     "connections": 2},
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 13},
        "stage": [{"name": name, "why": "Planted.", "afresh": True, "client": client}
                  for name, client in stages.items()],
    }  # fmt: skip


def diagnosed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *names: str
) -> tuple[Path, dict[str, StageDiagnosis]]:
    """A run of these stages, and what limited each."""
    monkeypatch.chdir(folder)
    planned = pgdyno.load_plan(plan(folder, {name: STAGES[name] for name in names}))
    run = pgdyno.run(planned, out=folder / "run.sqlite")
    found = {one.stage: one for one in pgdyno.diagnose(run.path).stages}
    assert found.keys() == set(names)
    for stage in found.values():
        adds_up(stage)
    return run.path, found


def test_a_row_that_is_held_is_named_first_and_what_can_be_tried_against_it(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is proposed is a plan that could be run."""
    path, found = diagnosed(folder, monkeypatch, "row")

    row = found["row"]
    assert row.limits == ("row_locks",), row.sentence
    assert row.window is not None
    held_by = row.window.answer("row_locks").held_by
    assert held_by is not None
    assert "the client, nothing asked" in held_by, "it sleeps while it holds the row"

    proposed = pgdyno.propose(path, "row", lowest_rung="D2", client=True)
    first = proposed.facts.tries[0]
    assert (first.move, first.predicted.limit) == ("async-commit", "row_locks"), proposed.text()
    before, tried = proposed.plan().stages
    assert before.workload == tried.workload
    assert {one.name: one.value for one in tried.settings}["synchronous_commit"] == "off"
    assert tried.expects == first.predicted
    refused = {one.move: one.why for one in proposed.facts.not_tried}
    assert "face" in refused["procedure"], "a script is sent as it is"

    proposed = pgdyno.propose(path, "row")
    assert {one.rung for one in proposed.facts.tries} <= {Rung.D0}
    assert {one.move for one in proposed.facts.not_tried} >= {"async-commit", "procedure"}


@pytest.mark.wide
def test_a_client_that_computes_is_named_and_on_paced_load_nothing_is_proposed(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, found = diagnosed(folder, monkeypatch, "client", "paced")

    client = found["client"]
    assert client.window is not None
    assert client.window.answer("client").verdict == "finding", client.sentence
    # Others on a busy machine may rightly be named beside it, or before it: they have its CPU.
    assert set(client.limits) <= {"client", "neighbours"}, client.sentence
    paced = found["paced"]
    assert (paced.outcome, paced.limits) == ("paced", ()), paced.sentence
    assert paced.sentence.startswith("Nothing is the limit, the load is paced")
    proposed = pgdyno.propose(path, "paced")
    assert (proposed.facts.tries, proposed.facts.not_tried) == ((), ())
    with pytest.raises(PlanError, match="nothing is proposed"):
        proposed.plan()


def adds_up(stage: StageDiagnosis) -> None:
    """All session time is accounted for, and every class answers."""
    for window in stage.windows:
        assert sum(one.share for one in window.parts) == pytest.approx(1.0)
        assert sum(one.root for one in window.parts) == pytest.approx(1.0)
        assert len(window.answers) == 16


@LIMITS
@pytest.mark.long
def test_flushes_of_a_device_that_is_held_back_are_the_limit(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    slow = limited("blkio", {"blkio.throttle.write_iops_device": "DEVICE 60"})
    held_back = Side(UPDATE, connections=2, beside=(slow,))
    stage = {"flush": {"file": ["update.sql"], "connections": held_back.connections}}
    with Company({"flush": held_back}, home_env / "work" / "data") as listen:
        planned = pgdyno.load_plan(plan(folder, stage))
        run = pgdyno.run(planned, out=folder / "run.sqlite", on_event=listen)

    (found,) = pgdyno.diagnose(run.path).stages
    assert found.limits == ("flush",), found.sentence
    adds_up(found)
