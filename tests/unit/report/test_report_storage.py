"""The page, Markdown and JSON of probed storage."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.api.runs import Run
from pgdyno.model.errors import PlanError
from pgdyno.model.floor import Probed
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.run import RunInfo
from pgdyno.report.storage import limits, render_html, render_json, render_md, tables
from pgdyno.store.run_file import RunFile
from tests.data.probed import DISK, MEMORY, floor, probed

BOTH = probed(floor("/a"), floor("/bb", MEMORY))


def test_paths_stand_side_by_side() -> None:
    for table in tables(BOTH):
        assert [column.head for column in table.columns] == ["", "/a", "/bb"]
    claims, deeds, follows = (
        {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
        for table in tables(BOTH)
    )

    assert claims["write cache"] == ["write back", "not told"]
    assert claims["atomic writes"] == ["none promised", "not told"]
    assert deeds["fdatasync, one page"] == ["20,600/s, 48.5 µs"] * 2
    assert deeds["random read"][0].startswith("100,000/s")
    assert follows["1 client"] == ["20,600/s"] * 2
    assert follows["commit_delay to try"] == ["24 µs"] * 2


def test_a_flush_after_rest_is_told_where_it_takes_longer() -> None:
    deeds = {row[0].text: row[1].text for row in tables(BOTH)[1].rows}
    alone = floor("/a").mixed.alone
    level = replace(floor("/a"), rested=(alone, alone, alone))

    assert deeds["a flush after 60 µs of rest"] == "467 µs"
    assert "/a: a flush takes 1.12 ms after 800 µs of rest and 374 µs right after" in " ".join(
        limits(BOTH)
    )
    assert "of rest" not in " ".join(limits(probed(level)))
    before = probed(replace(floor("/a"), rested=()))
    assert "of rest" not in " ".join(limits(before))
    assert "not measured" in render_md(before)


def test_transactions_lower_what_flushes_allow() -> None:
    told = probed(floor("/a"))
    asked = replace(told, wish=replace(told.wish, transaction_us=1000))
    most, fewer = (
        json.loads(render_json(each))["derived"][0]["commits_per_s"] for each in (told, asked)
    )
    *_, table = tables(asked)

    assert set(most.values()) == {None}
    assert fewer["1"] < fewer["16"] <= 2_000  # 2 CPUs
    assert len(tables(told)) == len(tables(asked)) - 1
    assert table.caption == "Synchronous commits with 1000 µs of CPU a transaction, 2 CPUs"
    assert table.rows[0][0].text == "1 client"


def test_atomic_writes_are_told_with_their_size() -> None:
    one = floor("/a", replace(DISK, atomic_write_bytes=16_384))

    assert "up to 16.0 KiB" in render_md(probed(one))


def test_the_page_holds_charts_doubts_and_limits() -> None:
    page = render_html(BOTH)

    assert page.count('id="chart-grid-') == page.count('id="chart-latency-') == 4
    assert 'id="chart-methods-1"' in page
    assert 'id="chart-commits-1"' in page
    assert "tmpfs keeps its files in memory" in page
    assert "http://" not in page.split("<script>")[0]


def test_the_limits_of_the_numbers_are_told() -> None:
    told = " ".join(limits(BOTH))

    assert "/a: the file of 4.00 GiB fits into memory (16.0 GiB)" in told
    assert "/bb: tmpfs refuses direct I/O" in told
    large = replace(floor("/a").prepared, memory_bytes=1 << 30)
    assert "fits into memory" not in " ".join(limits(probed(replace(floor("/a"), prepared=large))))


def test_json_holds_what_was_measured_and_what_follows() -> None:
    told = json.loads(render_json(BOTH))

    assert told["schema"] == "pgdyno.experiment.storage/1"
    assert told["measured"]["floors"][0]["grid"][0]["latency"]["p50_ns"] == 100_000
    assert told["derived"][0]["commits_per_s_at_most"]["4"] == 2 * 20_599.670
    assert told["derived"][1]["capped_by"]["by"] == "host or device"


def test_it_comes_back_from_the_run_file(tmp_path: Path) -> None:
    info = RunInfo(BOTH.ident, 1, "0.1.0", "pgdyno storage /a", None, {}, {}, None)
    path = tmp_path / "r.sqlite"
    with RunFile.create(path, info, ()) as run:
        assert run.found("storage", Probed) is None
        run.put_found("storage", replace(BOTH, floors=()))
        run.put_found("storage", BOTH)

    with RunFile.read(path) as run:
        assert run.found("storage", Probed) == BOTH
    assert from_json(Probed, to_json(BOTH)) == BOTH


def test_a_file_from_before_knees_were_stored_is_of_storage(tmp_path: Path) -> None:
    info = RunInfo(BOTH.ident, 1, "0.1.0", "pgdyno storage /a", None, {}, {}, None)
    path = tmp_path / "r.sqlite"
    with RunFile.create(path, info, ()) as run:
        run.put_found("storage", BOTH)
    with closing(sqlite3.connect(path)) as db, db:
        head = json.loads(db.execute("SELECT value FROM head WHERE key = 'info'").fetchone()[0])
        del head["experiment"]
        db.execute("UPDATE head SET value = ? WHERE key = 'info'", (json.dumps(head),))
        db.execute("PRAGMA user_version = 3")

    found = Run(path)

    assert found.info.experiment == "storage"
    assert found.probed == BOTH
    assert not found.is_whole, "two devices were never read together"
    assert found.report("md") == render_md(BOTH)
    with pytest.raises(PlanError, match="searched no knee"):
        _ = found.curve
