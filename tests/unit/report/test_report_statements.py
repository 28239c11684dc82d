"""Statements, tables and plans in the report: few words, and none of what did not move."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.snapshot_facts import (
    PlanByRound,
    PlanChange,
    PlanDifference,
    PlanEstimate,
    PlanRow,
    Plans,
    StatementRow,
    StatementUse,
    TableRow,
    TableUse,
)
from pgdyno.report.document import Points, Table, Text
from pgdyno.report.sections.statements import SHOWN_MAX, section

STOCK = TableUse(
    2e9, 35e6, 812.0, 0.91, 12_040.0, 1.0, 0.0, 30.0, 5.0, live_rows=100_000.0, moved_per_s=7.0,
    sequential_scans_per_s=0.5, index_scans_per_s=99.5, vacuum_s=1.2, analyze_s=0.0,
    since_vacuum_s=12.0, since_analyze_s=3_600.0, inserted_since_vacuum=11.0,
    modified_since_analyze=1_234.0,
)  # fmt: skip
STILL = TableUse(10_000.0, 0.0, 0.0, None, 0.0, 0.0, 0.0, 0.0, 5.0)
NONE = Plans(34, (), (), ())


def found(facts: Facts, **changes: Any) -> Facts:
    nothing: dict[str, Any] = {"statements": (), "tables": (), "plans": None}
    return replace(facts, stages=facts.stages[:2], **{**nothing, **changes})


def test_nothing_is_said_where_nothing_was_read(facts: Facts) -> None:
    assert section(found(facts)) is None


def test_a_statement_tells_what_a_call_took(facts: Facts) -> None:
    use = StatementUse(
        0.412, 812.0, 0.00051, 1.0, 0.25, 230.0, wal_records=2.5, wal_fpi=0.012
    )  # fmt: skip
    one = section(found(facts, statements=(StatementRow("no_stock", "new_order", (use, None)),)))
    assert one is not None
    table, about = one.blocks
    assert isinstance(about, Text)
    assert isinstance(table, Table)
    (name, cell, other) = table.rows[0]
    assert (name.text, name.note) == ("no_stock", "new order")
    assert cell.text == "0.41"
    assert cell.note == (
        "812/s, of 510 µs, 1 row, 0.25 blocks read, 230 B of WAL, 2.5 WAL records,"
        " 0.012 full page images"
    )
    assert other.tone == "quiet"


def test_leaders_are_shown_once_and_say_by_what_they_lead(facts: Facts) -> None:
    use = StatementUse(0.412, 812.0, 0.00051, 1.0, 0.25, None, 12.0, 1.1, 0.02, 3.0, 2e-5, 1e-4)
    many = tuple(StatementRow(f"s{at}", "", (use, None)) for at in range(SHOWN_MAX + 3))
    led = replace(many[-1], leads={"calls": 1, "WAL": 3}, kind="new_order")
    one = section(found(facts, statements=(*many[:-1], led)))
    assert one is not None
    table, about = one.blocks
    assert isinstance(about, Text)
    assert isinstance(table, Table)
    names = [row[0].text for row in table.rows]
    assert len(names) == len(set(names)) == SHOWN_MAX + 1
    assert table.caption.endswith("2 statements more are in the run file.")
    name, cell = table.rows[-1][:2]
    assert (name.text, name.note) == (led.statement, "new order; no. 1 by calls, no. 3 by WAL")
    assert cell.note == (
        "812/s, of 510 µs, I/O 100 µs, planning 20.0 µs, 1 row, 0.25 blocks read, 12 hit,"
        " 1.1 dirtied, 0.02 written, 3 temporary blocks"
    )


def test_what_is_next_to_nothing_of_a_call_is_left_out(facts: Facts) -> None:
    use = StatementUse(0.412, 812.0, 0.001, 0.0, 0.009, None, 0.01, 0.0, None, None, 9e-6, 1e-5)
    one = section(found(facts, statements=(StatementRow("s", "", (use, None)),)))
    assert one is not None
    table, about = one.blocks
    assert isinstance(about, Text)
    assert isinstance(table, Table)
    assert table.rows[0][1].note == "812/s, of 1.00 ms, I/O 10.0 µs, 0.01 hit"


def test_tables_that_stand_still_are_left_out(facts: Facts) -> None:
    rows = (TableRow("stock", (STOCK, STOCK)), TableRow("item", (STILL, STILL)))
    one = section(found(facts, tables=rows))
    assert one is not None
    tables = [block for block in one.blocks if isinstance(block, Table)]
    assert [[row[0].text for row in table.rows] for table in tables] == [["stock"]] * 3
    assert all(table.folded for table in tables)
    became, read, left = (table.rows[0][1] for table in tables)
    assert became.note == (
        "33.4 MiB more, 812 rows/s changed, 91% of updates HOT, 7 updates/s onto another page,"
        " 100,000 rows live"
    )
    assert (read.text, read.note) == (
        "100/s", "99.5/s by index, 0.5/s in sequence, 30 rows/s read in sequence"
    )  # fmt: skip
    assert (left.text, left.note) == (
        "12,040",
        "VACUUM 1× took 1.20 s, the last 12 s ago, last ANALYZE 1 h 00 min ago, 11 rows inserted"
        " since a VACUUM, 1,234 rows changed since an ANALYZE",
    )


def test_one_row_is_one_row(facts: Facts) -> None:
    one_row = replace(
        STOCK, live_rows=1.0, inserted_since_vacuum=1.0, modified_since_analyze=1.0
    )  # fmt: skip
    one = section(found(facts, tables=(TableRow("warehouse", (one_row, STILL)),)))
    assert one is not None
    tables = [block for block in one.blocks if isinstance(block, Table)]
    became, _, left = (table.rows[0][1].note or "" for table in tables)
    assert became.endswith(", 1 row live")
    assert left.endswith(", 1 row inserted since a VACUUM, 1 row changed since an ANALYZE")


def test_what_a_version_does_not_count_is_not_told_as_zero(facts: Facts) -> None:
    old = TableUse(2e9, 0.0, 0.0, None, 0.0, 1.0, 0.0, 0.0, 5.0)
    one = section(found(facts, tables=(TableRow("stock", (old, STILL)),)))
    assert one is not None
    (left,) = one.blocks
    assert isinstance(left, Table)
    assert [(cell.text, cell.note) for cell in left.rows[0][1:]] == [
        ("0", "VACUUM 1×"),
        ("0", None),
    ]


def test_plans_are_told_in_full_with_what_the_planner_expected(facts: Facts) -> None:
    same, other = PlanEstimate(8.44, 8.44, 1.0, 1.0), PlanEstimate(8.44, 912.0, 1.0, None)
    later = PlanEstimate(None, 2.35, None, 1.0)
    row = PlanRow("no_stock", "new_order", "Index Scan stock", ("Index Scan: Index Cond (a = $1)",),
                  (same, other))  # fmt: skip
    once = replace(row, kind="", nodes=(), stages=(None, later))
    one = section(found(facts, plans=replace(NONE, rows=(row, once))))
    assert one is not None
    table = one.blocks[-1]
    assert isinstance(table, Table)
    assert table.folded
    assert [(cell.text, cell.note) for cell in table.rows[0]] == [
        ("no_stock", "new order"), ("Index Scan stock", "Index Scan: Index Cond (a = $1)"),
        ("8.44", "1 row"), ("8.44 → 912", "1 → – row"),
    ]  # fmt: skip
    assert table.rows[1][2].text == "–"
    assert (table.rows[1][3].text, table.rows[1][3].note) == ("– → 2.35", "– → 1 row")


def test_plans_that_stay_are_one_sentence(facts: Facts) -> None:
    one = section(found(facts, plans=NONE))
    assert one is not None
    (text,) = one.blocks
    assert isinstance(text, Text)
    assert text.text.startswith("The plans of 34 statements were the same at both ends")
    # A table was read in sequence 4,410 times a second, above plans that all read its index.
    assert "a session of the load keeps the one that it has made until" in text.text


def test_a_change_in_several_rounds_is_told_once_and_stages_with_one_plan_together(
    facts: Facts,
) -> None:
    changes = tuple(PlanChange("no_stock", "tuned", at, "Index Scan", "Seq Scan") for at in (1, 3))
    differences = (PlanDifference("no_item", ("Index Scan", "Seq Scan")),)
    one = section(found(facts, plans=replace(NONE, changes=changes, differences=differences)))
    assert one is not None
    warning, changed, _, differing = one.blocks
    assert isinstance(warning, Text)
    assert warning.tone == "warn"
    assert isinstance(changed, Points)
    assert changed.items == (
        "no_stock in rounds 1 and 3 of tuned: from `Index Scan` to `Seq Scan`.",
    )
    assert isinstance(differing, Points)
    first, second = (stage.name for stage in facts.stages[:2])
    assert differing.items == (f"no_item: `Index Scan` in {first}; `Seq Scan` in {second}.",)


def test_plans_of_rounds_are_told_of_their_stage_and_not_as_the_same(facts: Facts) -> None:
    several = PlanByRound("no_item", "tuned", (("Index Scan", (1, 3)), ("Seq Scan", (2,))))
    one = section(found(facts, plans=replace(NONE, by_round=(several,))))
    assert one is not None
    warning, told = one.blocks
    assert isinstance(warning, Text)
    assert warning.text.startswith("Rounds of one stage began with other plans of the same")
    assert isinstance(told, Points)
    assert told.items == (
        "no_item in tuned: `Index Scan` in rounds 1 and 3; `Seq Scan` in round 2.",
    )
