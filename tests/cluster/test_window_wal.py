"""What the WAL of a window was made of, read after it on a real server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pgdyno
from pgdyno.model.run import TrialResult
from pgdyno.store import RunFile

pytestmark = pytest.mark.cluster
TPCB: dict[str, object] = {"kind": "tpcb", "scale": 1, "connections": 2}


def results(run: pgdyno.Run) -> dict[str, TrialResult]:
    with RunFile.read(run.path) as file:
        return {one.stage: one.result for one in file.finished() if one.result is not None}


def plan(
    *stages: dict[str, object], workload: dict[str, object] = TPCB, **protocol: object
) -> pgdyno.Plan:
    return pgdyno.load_plan({
        "name": "wal",
        "question": "What is WAL made of?",
        "target": {"kind": "embedded", "initdb": ["--wal-segsize=1"]},
        "workload": workload,
        "protocol": {"rounds": 1, "warmup_s": 1, "window_s": 3, **protocol},
        # Segments of 1 MiB: initdb writes 64 MB, which a fast machine fills within a window.
        "stage": [
            {"why": "Measured.", "afresh": True, "settings": {"max_wal_size": "2GB"}, **one}
            for one in stages
        ],
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
@pytest.mark.parametrize("schema", ["spec", pytest.param("bmsql", marks=pytest.mark.long)])
def test_transactions_have_the_kinds_of_the_workload(
    folder: Path, home_env: Path, schema: str
) -> None:
    tpcc: dict[str, object] = {"kind": "tpcc", "warehouses": 1, "connections": 4, "schema": schema}
    stages: list[dict[str, object]] = [
        {"name": face, "client": {"face": face}} for face in ("statement", "procedure")
    ]
    run = pgdyno.run(plan(*stages, workload=tpcc), out=folder / "run.sqlite")

    for stage, result in results(run).items():
        assert result.wal is not None, result.notes
        sums = result.wal.transactions
        assert sums is not None
        others = (sums.further, sums.rolled_back, sums.unfinished, sums.outside)
        whole = [*(one.used for one in sums.committed), *others]
        assert sum(one.bytes for one in whole) == result.wal.record_bytes
        named = {one.kinds[0]: one.used for one in sums.committed if one.kinds}
        assert set(named) == {"new_order", "payment", "delivery"}, stage
        share = sum(one.transactions for one in named.values()) / result.wal.commits
        assert share > 0.98, [one.tables for one in sums.committed]
        facts = {one.kinds: one for one in next(
            one for one in run.facts.wal if one.stage == stage
        ).transactions}  # fmt: skip
        # An order writes ten lines and ten items of stock; a payment four rows.
        assert facts["new_order",].records > 3 * facts["payment",].records
        assert facts["new_order",].share + facts["payment",].share > 0.5
    assert "new_order" in run.report("md").split("What WAL is made of")[1]


@pytest.mark.wide
def test_rows_of_partitions_and_toast_are_those_of_their_table(
    folder: Path, home_env: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = """
CREATE TABLE parts (id int, text text) PARTITION BY RANGE (id);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (0) TO (5);
CREATE TABLE parts_2 PARTITION OF parts FOR VALUES FROM (5) TO (10);
ALTER TABLE parts ALTER text SET STORAGE EXTERNAL;
ALTER TABLE parts_1 ALTER text SET STORAGE EXTERNAL;
ALTER TABLE parts_2 ALTER text SET STORAGE EXTERNAL;
"""
    monkeypatch.chdir(folder)
    (folder / "schema.sql").write_text(schema)
    (folder / "put.sql").write_text(
        "\\set id random(0, 9)\nINSERT INTO parts VALUES (:id, repeat('long', 3000));\n"
    )
    script: dict[str, object] = {"kind": "script", "file": ["put.sql"], "connections": 2,
              "setup": "schema.sql"}  # fmt: skip
    run = pgdyno.run(plan({"name": "one"}, workload=script), out=folder / "run.sqlite")

    wal = results(run)["one"].wal
    assert wal is not None
    assert wal.transactions is not None
    (kind,) = (one for one in wal.transactions.committed if one.kinds)
    assert (kind.tables, kind.kinds) == (("parts",), ("put.sql",))
    assert kind.used.transactions > 0.95 * wal.commits


@pytest.mark.wide
def test_who_kills_its_server_at_once_reads_none(folder: Path, home_env: Path) -> None:
    run = pgdyno.run(plan({"name": "killed"}, crash_recovery=True), out=folder / "run.sqlite")

    assert results(run)["killed"].wal is None
    assert results(run)["killed"].recovery is not None
    assert run.facts.wal == ()
