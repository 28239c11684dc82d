"""What rules read of a window: its load, its checkpoints, what a transaction takes over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pytest

from pgdyno.analysis.account_facts import NoAccount
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.analysis.windows import window_facts
from pgdyno.model.event_detail import EventDetail
from pgdyno.model.run import (
    Cell,
    Event,
    Series,
    SnapshotColumn,
    SnapshotRows,
    TrialRecord,
    TrialResult,
    TrialState,
)
from tests.data.miniature import CHARACTERS, START_NS, a_plan, a_result

NS = 1_000_000_000
PLAN = a_plan(CHARACTERS, 1)
RESULT = a_result()
BEGIN_NS, END_NS = RESULT.window_ns


def facts(
    result: TrialResult = RESULT, *series: Series, further: Sequence[SnapshotRows] = ()
) -> WindowFacts:
    record = TrialRecord(1, 1, "initdb", "x", TrialState.FINISHED, None, START_NS, None, result)
    of = {one.name: one for one in series}
    return window_facts(record, PLAN, PLAN.stages[0], of, {}, (*SNAPSHOTS, *further))


def tables(at: str, dead: int, live: int) -> SnapshotRows:
    columns = (
        SnapshotColumn("relation", "", "label"), SnapshotColumn("dead_rows", "1", "gauge"),
        SnapshotColumn("live_rows", "1", "gauge"),
    )  # fmt: skip
    rows = (
        {"relation": "district", "dead_rows": dead, "live_rows": live},
        {"relation": "tiny", "dead_rows": 3, "live_rows": 1},
        {"relation": "unknown", "dead_rows": None, "live_rows": None},
    )
    end = {"begin": BEGIN_NS, "end": END_NS}
    return SnapshotRows("tables", at, end[at], columns, rows)  # type: ignore[arg-type]


SNAPSHOTS = (tables("begin", 10, 90), tables("end", 50, 50))


def test_dead_rows_are_shares_at_both_ends_and_small_tables_have_none() -> None:
    assert facts().dead_share == {"district": (0.1, 0.5), "tiny": (0.0, 0.0)}


def test_the_load_adds_up_over_kinds() -> None:
    load = facts().load
    assert load.connections == PLAN.stages[0].workload.sessions
    assert load.ended == sum(k.window.succeeded + k.window.rolled_back for k in RESULT.kinds)
    assert load.per_s == pytest.approx(load.ended / RESULT.window_s)
    assert load.waits_share == 0


def test_keying_and_thinking_are_a_terminals_time() -> None:
    kinds = tuple(
        replace(kind, keying_mean_s=2.0, think_mean_s=7.0,
                response_ns={**kind.response_ns, "mean": NS})
        for kind in RESULT.kinds
    )  # fmt: skip
    assert facts(replace(RESULT, kinds=kinds)).load.waits_share == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("spans", "known"),
    [
        (((-5.0, 3.0), (10.0, 12.0)), 2),
        (((-9.0, -4.0),), 0),  # before the window: the log was read, and none ran in it
        (((25.0, None),), 1),
    ],
)
def test_checkpoints_of_the_window_are_those_that_overlap_it(
    spans: tuple[tuple[float, float | None], ...], known: int
) -> None:
    events = tuple(
        Event("checkpoint", BEGIN_NS + round(start * NS),
              None if end is None else BEGIN_NS + round(end * NS), EventDetail())
        for start, end in spans
    )  # fmt: skip
    found = facts(replace(RESULT, events=events)).checkpoints
    assert found is not None
    assert len(found) == known


def test_without_a_log_the_counters_tell_that_none_ran_or_nothing_is_known() -> None:
    bare = replace(RESULT, events=())
    quiet = replace(bare, deltas={"checkpoints.timed": 0.0, "checkpoints.requested": 0.0})
    busy = replace(bare, deltas={"checkpoints.timed": 1.0, "checkpoints.requested": 0.0})
    assert facts(quiet).checkpoints == ()
    assert facts(busy).checkpoints is None
    assert facts(replace(bare, deltas={})).checkpoints is None


def test_what_transactions_take_is_followed_by_seconds() -> None:
    at = np.arange(BEGIN_NS - NS, END_NS + 2 * NS, NS)
    hits = Series(
        "database.blocks_hit", "1", "counter", at, np.arange(at.size, dtype=np.float64) * 700
    )
    ended = Series("driver.committed.new_order", "1", "rate", at, np.full(at.size, 10.0))
    window = facts(RESULT, hits, ended)
    assert window.costs["database.blocks_hit"] == pytest.approx(np.full(window.second.size, 700.0))
    assert window.ended == pytest.approx(np.full(window.second.size, 10.0))
    assert window.second[0] < 1.5


def test_a_counter_that_began_anew_is_not_followed() -> None:
    at = np.arange(BEGIN_NS - NS, END_NS + 2 * NS, NS)
    grown = np.arange(at.size, dtype=np.float64) * 700
    grown[at.size // 2 :] -= grown[at.size // 2]
    hits = Series("database.blocks_hit", "1", "counter", at, grown)
    ended = Series("driver.committed.new_order", "1", "rate", at, np.full(at.size, 10.0))
    assert facts(RESULT, hits, ended).costs == {}


@pytest.mark.parametrize(
    ("lost_s", "reset_s"), [((5, 15), 1.0), ((0, 0), 2.0)], ids=["gap", "reset"]
)
def test_what_began_anew_or_met_a_gap_is_not_followed_though_nothing_fell(
    lost_s: tuple[int, int], reset_s: float
) -> None:
    at = np.arange(BEGIN_NS - NS, END_NS + 2 * NS, NS)
    kept = np.r_[0 : lost_s[0], lost_s[1] : at.size]
    hits = Series("database.blocks_hit", "1", "counter", at[kept], 700.0 * kept)
    ended = Series("driver.committed.new_order", "1", "rate", at, np.full(at.size, 10.0))

    def moment(at: Literal["begin", "end"], when_s: float) -> SnapshotRows:
        row: dict[str, Cell] = {"view": "pg_stat_database", "reset_unix_s": when_s}
        return SnapshotRows("resets", at, BEGIN_NS, (), (row,))

    looks = moment("begin", 1.0), moment("end", reset_s)
    assert facts(RESULT, hits, ended, further=looks).costs == {}


def test_what_was_not_sampled_is_not_there() -> None:
    window = facts(replace(RESULT, deltas={"wal.bytes": 30.0 * RESULT.window_s}))
    assert window.per_s("wal.bytes") == pytest.approx(30.0)
    assert window.per_s("wal.bytes", "wal.fpi") is None
    assert window.per_transaction("wal.fpi") is None
    assert isinstance(window.account, NoAccount)
    assert window.costs == {}
