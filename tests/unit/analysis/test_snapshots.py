"""Statements, tables and plans: what they took between the ends of the windows, and no more."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from pgdyno.analysis.snapshot_facts import PlanEstimate
from pgdyno.analysis.snapshots import (
    analyze_marks,
    plan_facts,
    shapes_of,
    statement_rows,
    table_rows,
)
from pgdyno.model.event_detail import EventDetail
from pgdyno.model.run import Cell, Event, SnapshotRows, TrialRecord, TrialState
from pgdyno.model.statement_counts import MOST, statement_growth
from tests.data.miniature import a_result

NS = 1_000_000_000
RESULT = a_result()
BEGIN, END = RESULT.window_ns
SECONDS = (END - BEGIN) / NS
TRIALS = [
    TrialRecord(number, number, "one", "x", TrialState.FINISHED, result=RESULT)
    for number in (1, 2)
]  # fmt: skip
TABLE: dict[str, Cell] = {
    "relation": "stock", "bytes": 1000, "index_bytes": 500, "dead_rows": 7, "inserted": 0,
    "updated": 0, "hot_updated": 0, "deleted": 0, "seq_rows_read": 0, "vacuums": 0, "analyzes": 0,
    "since_vacuum_s": None, "since_analyze_s": None, "freeze_age": 3,
}  # fmt: skip


def read(name: str, begin: list[dict[str, Cell]], end: list[dict[str, Cell]]) -> list[SnapshotRows]:
    ends: tuple[tuple[Literal["begin", "end"], int, list[dict[str, Cell]]], ...] = (
        ("begin", BEGIN, begin), ("end", END, end)
    )  # fmt: skip
    return [SnapshotRows(name, at, unix_ns, (), tuple(rows)) for at, unix_ns, rows in ends]


def statement(calls: int, exec_s: float, **other: Cell) -> dict[str, Cell]:
    labels: dict[str, Cell] = {
        "queryid": "1", "statement": "no_stock", "kind": "new_order", "query": "SELECT …",
    }  # fmt: skip
    return {**labels, "calls": calls, "exec_s": exec_s, "rows": calls, **other}


def test_a_statement_counts_what_it_took_in_the_windows_of_its_stage() -> None:
    snapshots = {
        1: read("statements", [statement(100, 9.0)], [statement(300, 13.0)]),
        2: read("statements", [], [statement(200, 4.0)]),  # it came into being in the window
    }
    (row,) = statement_rows(["one", "two"], TRIALS, snapshots)

    assert (row.statement, row.kind) == ("no_stock", "new_order")
    use, other = row.stages
    assert other is None
    assert use is not None
    assert use.calls_per_s == pytest.approx(400 / (2 * SECONDS))
    assert use.sessions == pytest.approx(8.0 / (2 * SECONDS))
    assert use.mean_s == pytest.approx(0.02)
    assert (use.rows, use.read_blocks, use.wal_bytes) == (1.0, None, None)


def test_a_statement_tells_blocks_and_times_where_they_are_counted() -> None:
    counted = {
        "wal_records": 30, "wal_fpi": 2,
        "shared_blks_read": 20, "shared_blks_hit": 400, "shared_blks_dirtied": 40,
        "shared_blks_written": 10, "temp_blks_read": 6, "temp_blks_written": 4, "plan_s": 0.0,
        "read_s": 0.5, "write_s": 0.1,
    }  # fmt: skip
    end = read("statements", [], [statement(200, 4.0, **counted)])
    (row,) = statement_rows(["one"], TRIALS, {1: end})
    (use,) = row.stages
    assert use is not None
    assert (use.read_blocks, use.hit_blocks, use.dirtied_blocks) == (0.1, 2.0, 0.2)
    assert (use.written_blocks, use.temp_blocks) == (0.05, 0.05)
    assert (use.wal_records, use.wal_fpi) == (0.15, 0.01)
    assert use.io_s == pytest.approx(0.003)
    assert use.plan_s is None, "nothing was planned, or track_planning is off"


def test_leaders_by_calls_wal_reads_and_temporary_blocks_are_marked() -> None:
    rows = [
        statement(100 * at, 100.0 - at, queryid=str(at), statement=f"s{at}",
                  wal_bytes=at * (at != 9), temp_blks_read=0, temp_blks_written=50 * (at == 1))
        for at in range(1, 10)
    ]  # fmt: skip
    found = statement_rows(["one"], TRIALS, {1: read("statements", [], rows)})
    leads = {row.statement: dict(row.leads) for row in found}

    assert leads["s9"] == {"calls": 1}, "it wrote none"
    assert leads["s8"] == {"calls": 2, "WAL": 1}
    assert leads["s1"] == {"temporary blocks": 1}
    assert leads["s5"] == {}, "the three first of each"
    assert leads["s6"] == {"WAL": 3}


def test_a_place_is_the_best_of_all_stages() -> None:
    trials = [TRIALS[0], replace(TRIALS[1], stage="two")]
    few, many = (
        [statement(calls, 1.0), statement(5, 1.0, queryid="2", statement="other")]
        for calls in (1, 9)
    )
    snapshots = {1: read("statements", [], few), 2: read("statements", [], many)}
    found = statement_rows(["one", "two"], trials, snapshots)
    assert {row.statement: dict(row.leads) for row in found} == {
        "no_stock": {"calls": 1}, "other": {"calls": 1}
    }  # fmt: skip


def test_statements_that_share_a_name_are_added_and_unnamed_ones_have_their_text() -> None:
    unnamed = statement(1, 5.0, queryid="3", statement="", kind="", query="VACUUM  stock")
    end = [statement(10, 1.0), statement(30, 2.0, queryid="2"), unnamed]
    rows = statement_rows(["one"], TRIALS, {1: read("statements", [], end)})

    assert [row.statement for row in rows] == ["VACUUM  stock", "no_stock"]
    assert [use and use.mean_s for row in rows for use in row.stages] == pytest.approx([5, 0.075])


def test_what_was_reset_or_read_at_one_end_alone_is_not_counted() -> None:
    reset = read("statements", [statement(100, 9.0)], [statement(3, 0.1)])
    assert statement_rows(["one"], TRIALS, {1: reset, 2: reset[:1]}) == ()
    emptied = read("tables", [{**TABLE, "updated": 9}], [TABLE])
    assert table_rows(["one"], TRIALS, {1: emptied}) == ()


def counts(reset: float, evictions: int = 0) -> dict[str, Cell]:
    return {"read_unix_s": 100.0, "reset_unix_s": reset, "evictions": evictions}


GONE_ON = [counts(5.0)] * 2


@pytest.mark.parametrize(
    ("then", "now", "known", "calls"),
    [
        ({"since_unix_s": 7.0}, {"since_unix_s": 7.0}, GONE_ON, 200),
        ({"since_unix_s": 7.0}, {"since_unix_s": 101.0}, GONE_ON, None),
        # Of another user, since its own begin: those of one statement are entries of their own.
        ({"entry": "10"}, {"entry": "11", "since_unix_s": 101.0}, GONE_ON, 300),
        # It was there, and was not among the statements that were read.
        ({"entry": "10"}, {"entry": "11", "since_unix_s": 99.0}, GONE_ON, None),
        ({}, {}, [counts(5.0), counts(101.0)], None),
        ({}, {}, GONE_ON, 200),
        ({"wal_bytes": 80}, {"wal_bytes": 70}, GONE_ON, None),
        ({"since_unix_s": None}, {"since_unix_s": None}, [], 200),  # before 14
    ],
    ids=["counts on", "reset", "new", "not read before", "all reset", "none reset", "fell", "12"],
)
def test_what_outgrew_its_reset_is_not_counted(
    then: dict[str, Cell], now: dict[str, Cell], known: list[dict[str, Cell]], calls: int | None
) -> None:
    looks = read("statements", [statement(100, 9.0, **then)], [statement(300, 13.0, **now)])
    if known:
        looks += read("statement counts", known[:1], known[1:])
    rows = statement_rows(["one"], TRIALS, {1: looks})

    found = [use.calls_per_s * SECONDS for row in rows for use in row.stages if use is not None]
    assert found == ([] if calls is None else [pytest.approx(calls)])
    growth = statement_growth(looks)
    assert growth is not None
    assert growth.unknown == (calls is None)


def test_a_full_first_look_does_not_tell_what_was_there() -> None:
    first = [statement(1, 9.0, queryid=str(number)) for number in range(MOST)]
    looks = read("statements", first, [statement(300, 13.0, queryid="late")])
    assert statement_rows(["one"], TRIALS, {1: looks}) == ()


def test_a_table_that_came_among_those_that_are_read_is_not_known() -> None:
    """What it counted since it was made would all be the window's."""
    first = [{**TABLE, "relation": f"t{number}"} for number in range(MOST)]
    looks = read("tables", first, [{**TABLE, "relation": "late", "inserted": 9_000_000}])
    assert table_rows(["one"], TRIALS, {1: looks}) == ()
    looks = read("tables", first[1:], [{**TABLE, "relation": "new", "inserted": 900}])
    assert [one.table for one in table_rows(["one"], TRIALS, {1: looks})] == ["new"]


@pytest.mark.parametrize("late", [0, 1], ids=["begin", "end"])
def test_what_was_read_long_after_an_end_of_the_window_tells_nothing_of_it(late: int) -> None:
    after = {**TABLE, "inserted": 9}
    tables = read("tables", [TABLE], [after])
    statements = read("statements", [statement(100, 9.0)], [statement(300, 13.0)])
    for looks in (tables, statements):
        looks[late] = replace(looks[late], unix_ns=looks[late].unix_ns + 7 * NS)
    assert table_rows(["one"], TRIALS, {1: tables}) == ()
    assert statement_rows(["one"], TRIALS, {1: statements}) == ()
    tables[late] = replace(tables[late], unix_ns=tables[late].unix_ns - 2 * NS)
    assert len(table_rows(["one"], TRIALS, {1: tables})) == 1


def test_tables_of_a_database_that_was_reset_have_no_known_growth() -> None:
    after = {**TABLE, "inserted": 9}
    looks = read("tables", [TABLE], [after])

    def moments(at: float | None) -> list[dict[str, Cell]]:
        of = {"pg_stat_database": at, "pg_stat_wal": 3.0}
        return [{"view": view, "reset_unix_s": moment} for view, moment in of.items()]

    kept = [*looks, *read("resets", moments(None), moments(None))]
    assert len(table_rows(["one"], TRIALS, {1: kept})) == 1
    reset = [*looks, *read("resets", moments(None), moments(101.0))]
    assert table_rows(["one"], TRIALS, {1: reset}) == ()


def test_tables_tell_what_became_of_them() -> None:
    after = {
        **TABLE, "bytes": 1400, "index_bytes": 600, "inserted": 20, "updated": 80,
        "hot_updated": 60, "dead_rows": 40, "vacuums": 1, "freeze_age": 90,
    }  # fmt: skip
    (row,) = table_rows(["one"], TRIALS, {1: read("tables", [TABLE], [after])})

    (use,) = row.stages
    assert use is not None
    assert (use.bytes, use.grown_bytes, use.dead_rows) == (2000, 500, 40)
    assert (use.hot_share, use.vacuums, use.freeze_age) == (0.75, 1, 90)
    assert use.changed_per_s == pytest.approx(100 / SECONDS)


def test_tables_tell_how_they_were_read_and_what_waits_for_vacuum() -> None:
    counts: dict[str, Cell] = {
        "seq_scans": 2, "index_scans": 30, "moved_updated": 4, "vacuum_s": 0.5, "analyze_s": 0.25
    }  # fmt: skip
    levels: dict[str, Cell] = {
        "live_rows": 900, "modified_since_analyze": 12, "inserted_since_vacuum": 34,
        "since_vacuum_s": 5.0, "since_analyze_s": 6.0,
    }  # fmt: skip
    begun = {**TABLE, **levels, **dict.fromkeys(counts, 0)}
    (row,) = table_rows(["one"], TRIALS, {1: read("tables", [begun], [{**begun, **counts}])})

    (use,) = row.stages
    assert use is not None
    assert use.sequential_scans_per_s == pytest.approx(2 / SECONDS)
    assert use.index_scans_per_s == pytest.approx(30 / SECONDS)
    assert use.moved_per_s == pytest.approx(4 / SECONDS)
    assert (use.vacuum_s, use.analyze_s, use.live_rows) == (0.5, 0.25, 900)
    assert (use.modified_since_analyze, use.inserted_since_vacuum) == (12, 34)
    assert (use.since_vacuum_s, use.since_analyze_s) == (5.0, 6.0)


def test_what_a_version_does_not_count_of_a_table_is_not_known() -> None:
    (row,) = table_rows(["one"], TRIALS, {1: read("tables", [TABLE], [TABLE])})
    assert row.stages[0] is not None
    assert (row.stages[0].vacuum_s, row.stages[0].inserted_since_vacuum) == (None, None)
    assert row.stages[0].moved_per_s is None


def test_a_table_that_was_never_updated_has_no_hot_share() -> None:
    (row,) = table_rows(["one"], TRIALS, {1: read("tables", [TABLE], [TABLE])})
    assert row.stages[0] is not None
    assert row.stages[0].hot_share is None


def marks_of(row: dict[str, Cell], *events: Event) -> list[tuple[str, float]]:
    record = replace(TRIALS[0], result=replace(RESULT, events=events))
    return [(one.kind, one.start_s) for one in analyze_marks(record, read("tables", [], [row]))]


def test_an_analyze_that_no_log_tells_of_is_marked_at_its_second() -> None:
    row = {**TABLE, "since_analyze_s": SECONDS - 2.0, "since_vacuum_s": SECONDS + 9.0}
    assert marks_of(row) == [("analyze", pytest.approx(2.0))]


def test_what_the_log_tells_is_not_marked_twice() -> None:
    row = {**TABLE, "since_analyze_s": SECONDS - 2.0}
    at = BEGIN + 2 * NS

    def told(table: str) -> Event:
        return Event("autoanalyze", at - NS // 2, at, EventDetail(table=table))

    assert marks_of(row, told("tpcc.public.stock")) == []
    assert len(marks_of(row, told("tpcc.public.customer"))) == 1


def plan(shape: str, statement: str = "no_stock", error: str = "") -> dict[str, Cell]:
    return {"statement": statement, "kind": "new_order", "shape": shape, "error": error}


def test_a_plan_that_changed_in_a_window_is_told_with_both() -> None:
    index, seq = plan("Index Scan stock"), plan("Seq Scan stock")
    changed = read("plans", [index, plan("Result", "no_two")], [seq, plan("Result", "no_two")])
    found = plan_facts(["one"], TRIALS, {1: read("plans", [index], [index]), 2: changed})

    assert found is not None
    assert found.statements == 2
    (change,) = found.changes
    assert (change.statement, change.round) == ("no_stock", 2)
    assert (change.before, change.after) == ("Index Scan stock", "Seq Scan stock")
    assert found.differences == ()


def test_each_plan_is_told_with_its_nodes_and_what_was_expected_of_it() -> None:
    cond = '{"Node Type":"Limit","Parallel Aware":false,"Plans":[{"Node Type":"Index Scan","Index '
    begin: dict[str, Cell] = {
        **plan("Limit (Index Scan stock_pk)"), "cost": 8.5, "rows": 1,
        "plan": cond + 'Name":"stock_pk","Index Cond":"(a = $1)","Sort Key":["b","c"]}]}',
    }  # fmt: skip
    end, seq = {**begin, "cost": 9.5, "rows": 3}, {**plan("Seq Scan stock"), "cost": 99.0}
    found = plan_facts(["one", "two"], TRIALS, {1: read("plans", [begin], [end]),
                                                2: read("plans", [begin], [seq])})  # fmt: skip
    assert found is not None
    index, whole = found.rows
    assert (index.statement, index.kind) == ("no_stock", "new_order")
    assert index.nodes == ("Index Scan: Index Cond (a = $1), Sort Key b, c",)
    assert index.stages == (PlanEstimate(8.5, 9.5, 1.0, 3.0), None)
    assert (whole.shape, whole.nodes) == ("Seq Scan stock", ())
    assert whole.stages == (PlanEstimate(None, 99.0, None, None), None)


def test_plans_that_differ_between_stages_are_told_and_unknown_ones_do_not_differ() -> None:
    trials = [*TRIALS[:1], replace(TRIALS[1], stage="two")]
    index, seq = plan("Index Scan stock"), plan("Seq Scan stock")
    refused = plan("", "cut", "canceling statement due to lock timeout")
    snapshots = {
        1: read("plans", [index, refused], [index, refused]), 2: read("plans", [seq], [seq]),
    }  # fmt: skip
    found = plan_facts(["one", "two", "three"], trials, snapshots)

    assert found is not None
    (difference,) = found.differences
    assert difference.shapes == ("Index Scan stock", "Seq Scan stock", None)
    assert found.refused == (("cut", "canceling statement due to lock timeout"),)
    assert plan_facts(["one"], trials, {}) is None


def test_a_plan_that_differs_between_rounds_of_a_stage_is_no_difference_of_stages() -> None:
    index, seq = plan("Index Scan stock"), plan("Seq Scan stock")
    item, pay = plan("Index Scan item", "no_item"), plan("Result", "pay")
    trials = [
        replace(TRIALS[0], number=number, round=at, stage=stage)
        for number, (at, stage) in enumerate(
            [(1, "one"), (1, "two"), (2, "one"), (2, "two"), (3, "one"), (3, "two")], start=1
        )
    ]
    began = {
        1: [index, item], 2: [seq, plan("Seq Scan item", "no_item"), pay],
        3: [seq, item], 4: [seq, plan("Seq Scan item", "no_item"), pay],
        5: [index, item], 6: [seq, plan("Seq Scan item", "no_item"), pay],
    }  # fmt: skip
    snapshots = {number: read("plans", rows, rows) for number, rows in began.items()}
    found = plan_facts(["one", "two"], trials, snapshots)

    assert found is not None
    (within,) = found.by_round
    assert (within.statement, within.stage) == ("no_stock", "one")
    assert within.shapes == (("Index Scan stock", (1, 3)), ("Seq Scan stock", (2,)))
    assert [one.statement for one in found.differences] == ["no_item"]
    assert found.changes == ()
    assert shapes_of("two", trials, snapshots)["no_stock"] == "Seq Scan stock"
    several = "Index Scan stock, in other rounds Seq Scan stock"
    assert shapes_of("one", trials, snapshots)["no_stock"] == several
