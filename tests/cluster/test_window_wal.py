"""What the WAL of a window was made of, read after it on a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.run import TrialResult
from pgdyno.store import RunFile

pytestmark = pytest.mark.cluster
TPCB = {"kind": "tpcb", "scale": 1, "connections": 2}


def results(run: pgdyno.Run) -> dict[str, TrialResult]:
    with RunFile.read(run.path) as file:
        return {one.stage: one.result for one in file.finished() if one.result is not None}


def plan(*stages: dict[str, object], **protocol: object) -> pgdyno.Plan:
    return pgdyno.load_plan({
        "name": "wal",
        "question": "What is WAL made of?",
        "target": {"kind": "embedded", "initdb": ["--wal-segsize=1"]},
        "workload": TPCB,
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 3, **protocol},
        "stage": [{"why": "Measured.", "afresh": True, **one} for one in stages],
    })  # fmt: skip


@pytest.mark.wide
def test_it_is_told_by_kind_and_relation_as_far_as_segments_are_left(
    folder: Path, home_env: Path
) -> None:
    few = {"max_wal_size": "2MB", "min_wal_size": "2MB", "wal_recycle": "off"}
    run = pgdyno.run(plan({"name": "stock"}, {"name": "few", "settings": few}),
                     out=folder / "run.sqlite")  # fmt: skip

    found = results(run)
    wal = found["stock"].wal
    assert wal is not None, found["stock"].notes
    assert wal.share == pytest.approx(1, abs=0.001)
    committed = sum(kind.window.succeeded for kind in found["stock"].kinds)
    # From the window's first sample to its last, which are up to a second within.
    assert 0 < wal.commits <= committed * 1.1 + 50
    assert {"pgbench_accounts", "pgbench_history"} <= {one.name for one in wal.relations}
    assert "Transaction COMMIT" in {f"{one.manager} {one.kind}" for one in wal.kinds}
    assert sum(one.bytes for one in wal.kinds) == wal.record_bytes
    assert wal.image_bytes <= wal.record_bytes <= wal.bytes

    rest = found["few"].wal
    if rest is not None:  # else all was gone, or went while it was read
        assert 0 < rest.share <= 1
    else:
        assert any(
            note.startswith("what its WAL was made of is not known") for note in found["few"].notes
        )

    facts = {one.stage: one for one in run.facts.wal}
    assert facts["stock"].commits == wal.commits
    assert facts["stock"].bytes == pytest.approx(wal.bytes / wal.commits)
    assert "What WAL is made of" in run.report("html")
    assert "Heap" in run.report("md")
    assert json.loads(run.report("json"))["wal"][0]["stage"] == "stock"


@pytest.mark.wide
def test_who_kills_its_server_at_once_reads_none(folder: Path, home_env: Path) -> None:
    run = pgdyno.run(plan({"name": "killed"}, crash_recovery=True), out=folder / "run.sqlite")

    assert results(run)["killed"].wal is None
    assert results(run)["killed"].recovery is not None
    assert run.facts.wal == ()
