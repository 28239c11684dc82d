"""The server's own views: what they tell of a window, on what PostgreSQL 18 and 15 answered.

The saved files are of runs of TPC-C on two warehouses, some rows of each view.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pgdyno.analysis.view_facts import FreezeUse, Level, ServerViews, SlruUse
from pgdyno.analysis.views import server_views
from pgdyno.model.run import Cell, Series, SnapshotRows, TallySeries, TrialRecord, TrialState
from tests.data.miniature import a_result

NS = 1_000_000_000
SAVED = Path(__file__).parents[2] / "data" / "postgres"
RESULT = a_result()
BEGIN, END = RESULT.window_ns
SECONDS = (END - BEGIN) / NS


def saved(major: int) -> tuple[TrialRecord, list[SnapshotRows]]:
    told = json.loads((SAVED / f"views-{major}.json").read_text())
    begin, end = told["window_ns"]
    result = replace(RESULT, window_ns=(begin, end), deltas=told["deltas"])
    looks = [
        SnapshotRows(one["name"], one["at"], one["unix_ns"], (), tuple(one["rows"]))
        for one in told["snapshots"]
    ]
    return TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=result), looks


def views_of(major: int) -> ServerViews:
    record, looks = saved(major)
    return server_views(["one", "two"], [record], {}, {1: looks}, {})


def test_io_is_told_by_process_object_and_context_with_times_where_they_are_taken() -> None:
    found = views_of(18)
    io = {(one.process, one.object, one.context): one.stages for one in found.io}
    use, other = io["client backend", "relation", "normal"]

    assert other is None, "nobody read it there"
    assert use is not None
    assert use.per_s["reads"] > 100
    assert use.bytes_per_s["reads"] >= 8192 * use.per_s["reads"] * 0.99
    assert use.per_s["evictions"] > 0
    assert set(use.mean_s) == {"reads", "writes", "extends"}, "data are not synced by backends"
    assert 1e-7 < use.mean_s["reads"] < 0.01
    assert ("client backend", "temp relation", "normal") not in io, "nobody did that"
    assert found.io[0].process == "client backend", "who did most"


def test_io_that_fell_or_was_reset_is_not_known() -> None:
    record, looks = saved(18)
    fell = [
        replace(one, rows=tuple({**row, "reads": 0} if row["reads"] else row for row in one.rows))
        if (one.name, one.at) == ("pg_stat_io", "end") else one
        for one in looks
    ]  # fmt: skip
    assert server_views(["one"], [record], {}, {1: fell}, {}).io == ()
    assert record.result is not None
    begin, end = record.result.window_ns
    reset: dict[str, Cell] = {"view": "pg_stat_io", "reset_unix_s": 5.0}
    resets = [
        SnapshotRows("resets", "begin", begin, (), (reset,)),
        SnapshotRows("resets", "end", end, (), ({**reset, "reset_unix_s": 6.0},)),
    ]
    assert server_views(["one"], [record], {}, {1: [*looks, *resets]}, {}).io == ()


def test_times_of_one_operation_are_those_of_the_window() -> None:
    row: dict[str, Cell] = {
        "backend_type": "client backend", "object": "relation", "context": "normal",
        "reads": 10, "writes": 0, "extends": None, "read_bytes": 81_920, "read_s": 1.0,
        "write_s": 0.0, "extend_s": None, "evictions": 3,
    }  # fmt: skip
    then: dict[str, Cell] = {
        **row,
        "reads": 30,
        "read_bytes": 245_760,
        "read_s": 1.5,
        "evictions": 9,
    }
    looks = [
        SnapshotRows("pg_stat_io", "begin", BEGIN, (), (row,)),
        SnapshotRows("pg_stat_io", "end", END, (), (then,)),
    ]
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=RESULT)
    (found,) = server_views(["one"], [record], {}, {1: looks}, {}).io
    (use,) = found.stages
    assert use is not None
    assert use.mean_s == {"reads": pytest.approx(0.025)}, "what was not done took no time"
    assert use.per_s == pytest.approx(
        {"reads": 20 / SECONDS, "writes": 0, "evictions": 6 / SECONDS}
    )
    assert use.bytes_per_s == pytest.approx({"reads": 163_840 / SECONDS})


def test_buffers_are_told_at_both_ends_and_as_shares() -> None:
    found = views_of(18).buffers
    shares = [use.share for one in found for use in one.stages if use is not None]
    assert sum(shares) == pytest.approx(1)
    assert shares == sorted(shares, reverse=True)
    first = found[0].stages[0]
    assert first is not None
    assert (first.begin > 0, first.end > 0, first.dirty > 0) == (True, True, True)
    assert found[0].relation == "stock"
    assert views_of(15).buffers == (), "they were not looked at"
    assert "buffers" not in views_of(15).read


@pytest.mark.parametrize("major", [15, 18])
def test_indexes_that_no_scan_used_are_told_apart(major: int) -> None:
    found = {one.index: one for one in views_of(major).indexes}
    assert found["warehouse_pkey"].unused
    assert not found["stock_pkey"].unused
    use = found["stock_pkey"].stages[0]
    assert use is not None
    assert use.scans_per_s > 100
    assert use.rows_per_s >= use.scans_per_s
    assert next(iter(found)) == "stock_pkey"
    grown = found["orders_pkey"].stages[0]
    assert grown is not None
    assert 0 < grown.grown_bytes < grown.bytes


def test_age_is_told_with_how_far_it_may_go() -> None:
    for major in (15, 18):
        ages = {one.table: one.stages[0] for one in views_of(major).freeze}
        age = ages["stock"]
        assert age is not None
        assert (age.age > 100, age.max_age) == (True, 200_000_000)
    record, looks = saved(18)
    before = [
        replace(one, rows=tuple({k: v for k, v in row.items() if k != "freeze_max_age"}
                                for row in one.rows))
        for one in looks if one.name == "tables"
    ]  # fmt: skip
    (first, *_) = server_views(["one"], [record], {}, {1: before}, {}).freeze
    assert first.stages[0] is not None
    assert first.stages[0].max_age is None, "files before did not have it"


def test_levels_that_a_version_does_not_count_have_no_row() -> None:
    told = {
        major: {one.what for one in views_of(major).levels} for major in (15, 18)
    }  # fmt: skip
    assert {"sessions idle in a transaction", "sessions opened"} <= told[15]
    assert "parallel workers wanted" in told[18] - told[15]
    rows = {one.what: one.stages for one in views_of(18).levels}
    assert rows["sessions idle in a transaction"][1] is None
    one = rows["sessions idle in a transaction"][0]
    assert one is not None
    assert 0 < one.mean < 6
    assert one.most is None


def test_caches_of_states_are_told_whole() -> None:
    found = {one.cache: one.stages for one in views_of(15).slru}
    use = found["transaction"][0]
    assert use is not None
    assert use.hits_per_s > 100
    assert found["multixact_member"][0] == SlruUse(0.0, 0.0, 0.0), "zero, and known to be"
    record, _ = saved(15)
    assert record.result is not None
    nothing = replace(record, result=replace(record.result, deltas={}))
    assert server_views(["one"], [nothing], {}, {}, {}) == ServerViews()


def gauge(name: str, *values: float) -> Series:
    at = BEGIN + np.arange(len(values)) * NS
    return Series(name, "1", "gauge", at.astype(np.int64), np.array(values))


def test_gauges_have_their_mean_and_most_within_the_window() -> None:
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=RESULT)
    late = gauge("replication.flush_lag_s", 1.0, 3.0)
    late = replace(
        late, unix_ns=np.append(late.unix_ns, END + NS), values=np.append(late.values, 99)
    )
    series = {
        "replication.flush_lag_s": late, "transactions.prepared": gauge("transactions.prepared", 0),
        "freeze.database_age": gauge("freeze.database_age", 10, 20),
        "freeze.max_age": gauge("freeze.max_age", 100, 100),
    }  # fmt: skip
    found = server_views(["one"], [record], {1: series}, {}, {})
    levels = {(one.about, one.what): one.stages for one in found.levels}
    assert levels["replication", "lag of flushes"] == (Level(2.0, 3.0),)
    assert levels["sessions", "prepared transactions"] == (Level(0.0, 0.0),)
    assert [(one.table, one.stages) for one in found.freeze] == [("", (FreezeUse(20.0, 100.0),))]


def replicated(**slot: Cell) -> list[SnapshotRows]:
    known: dict[str, Cell] = {
        "slot": "s", "type": "physical", "wal_status": "reserved", "active": 1,
        "retained_bytes": 100.0, "xmin_age": None,
    }  # fmt: skip
    standby: dict[str, Cell] = {"standby": "b", "state": "streaming", "sync_state": "async",
               "replay_behind_bytes": 5.0, "replay_lag_s": None}  # fmt: skip
    further: dict[str, Cell] = {**standby, "replay_behind_bytes": 7.0, "write_lag_s": 0.5}
    return [
        SnapshotRows("slots", "begin", BEGIN, (), (known,)),
        SnapshotRows("slots", "end", END, (), ({**known, **slot},)),
        SnapshotRows("standbys", "begin", BEGIN, (), ()),
        SnapshotRows("standbys", "end", END, (), (standby, further)),
    ]


def test_slots_and_standbys_say_what_they_keep_and_how_late_they_are() -> None:
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=RESULT)
    looks = replicated(retained_bytes=160.0, active=0, xmin_age=9.0)
    found = server_views(["one"], [record], {}, {1: looks}, {})
    slot, standby = found.slots[0].stages[0], found.standbys[0].stages[0]
    assert slot is not None
    assert (slot.status, slot.retained_bytes, slot.grown_bytes) == ("reserved, inactive", 160, 60)
    assert slot.xmin_age == 9
    assert standby is not None
    assert (standby.status, standby.replay_behind_bytes) == ("streaming, async", 7.0)
    assert (standby.write_lag_s, standby.flush_lag_s, standby.replay_lag_s) == (0.5, None, None)
    kept = server_views(["one"], [record], {}, {1: replicated(retained_bytes=None)}, {}).slots[0]
    assert kept.stages[0] is not None
    assert kept.stages[0].retained_bytes is None, "it keeps none yet, which is not zero"


def tally(name: str, dimensions: tuple[str, ...], met: dict[tuple[str, ...], int]) -> TallySeries:
    """Keys that were met once in each of so many seconds of ten."""
    first = -(-BEGIN // NS)
    pairs = [(first + at, key) for key, count in enumerate(met.values()) for at in range(count)]
    return TallySeries(
        name, dimensions, tuple(met), np.array([one for one, _ in pairs], dtype=np.int64),
        np.array([key for _, key in pairs], dtype=np.int64), np.ones(len(pairs), dtype=np.int64),
        first + np.arange(10), np.ones(10, dtype=np.int64),
    )  # fmt: skip


def test_commands_are_told_by_seconds_and_phase_and_how_far_they_came() -> None:
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=RESULT)
    seen: dict[tuple[str, ...], int] = {("vacuum", "stock", "scanning heap"): 3,
                                        ("vacuum", "stock", "cleaning"): 1}  # fmt: skip
    met = tally("progress", ("command", "relation", "phase"), seen)
    series = {
        "progress.vacuum.done": gauge("progress.vacuum.done", 0, 5, 40),
        "progress.vacuum.total": gauge("progress.vacuum.total", 0, 50, 50),
    }
    found = server_views(["one", "two"], [record], {1: series}, {}, {1: {"progress": met}})
    (row,) = found.progress
    use, other = row.stages
    assert other is None
    assert use is not None
    assert (row.command, use.seconds, use.furthest) == ("vacuum", 4, 0.8)
    assert use.parts == (("stock", "scanning heap", 3.0), ("stock", "cleaning", 1.0))
    none = met.seconds[:0]
    unmet = replace(met, keys=(), seconds=none, key=none, counts=none)
    empty = server_views(["one"], [record], {}, {}, {1: {"progress": unmet}})
    assert (empty.progress, empty.read) == ((), ("progress",)), "it was looked at"


def test_reads_under_way_are_told_at_a_moment() -> None:
    record = TrialRecord(1, 1, "one", "x", TrialState.FINISHED, result=RESULT)
    met = tally("aio", ("operation", "state", "target"), {
        ("readv", "SUBMITTED", "smgr"): 4, ("writev", "SUBMITTED", "smgr"): 6})  # fmt: skip
    found = server_views(["one", "two"], [record], {}, {}, {1: {"aio": met}})
    assert [(one.operation, one.stages) for one in found.aio] == [
        ("writev", (pytest.approx(0.6), None)), ("readv", (pytest.approx(0.4), None))
    ]  # fmt: skip
