"""What the server's views say, in the report: folded, stages side by side, and nothing made up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.facts import Facts
from pgdyno.analysis.server_facts import ServersFacts
from pgdyno.analysis.telemetry_facts import Lacking, TelemetryCost, TelemetryFacts
from pgdyno.analysis.view_facts import Level, LevelRow, ServerViews
from pgdyno.model.server_views import IO
from pgdyno.report.document import Cell, Points, Section, Table, Text
from pgdyno.report.sections.views import SHOWN_MAX, section
from tests.data.views import views


@pytest.fixture
def full(facts: Facts) -> Section:
    found = section(replace(facts, views=views(len(facts.stages)), telemetry=None))
    assert found is not None
    return found


def table(found: Section, begin: str) -> Table:
    (one,) = (t for t in found.blocks if isinstance(t, Table) and t.caption.startswith(begin))
    return one


def cells(found: Section, begin: str, row: int = 0) -> list[Cell]:
    return list(table(found, begin).rows[row])


def test_all_tables_are_folded(full: Section) -> None:
    tables = [one for one in full.blocks if isinstance(one, Table)]
    assert len(tables) == 12
    assert all(one.folded for one in tables)
    assert len({one.caption for one in tables}) == len(tables)


def test_io_says_what_each_operation_moved_and_took(full: Section) -> None:
    name, cell, *_, none = cells(full, "I/O by process")
    assert (name.text, name.note) == ("client backend: relation", "normal")
    assert cell.text == "1,810/s"
    assert cell.note is not None
    assert cell.note.startswith("1,230 reads/s (9.63 MiB/s, 123 µs each), 568 writes/s")
    assert "1,110 evictions/s, 321 reuses/s, 123,000 hits/s" in cell.note
    assert (none.text, none.note) == ("0", None), "it was counted there, and nothing was done"


def test_buffers_beyond_those_shown_are_one_row(full: Section) -> None:
    shown = table(full, "The buffer cache")
    assert len(shown.rows) == SHOWN_MAX + 1
    name, cell, *_ = shown.rows[-1]
    assert name.text == "8 further relations"
    assert cell.text == "98%"
    assert cell.note == "987,648 buffers, 36,536 dirty, 187,648 more than at the beginning"
    assert shown.rows[0][-1].tone == "quiet", "it was not read in the last stage"


def test_indexes_that_no_scan_used_stand_apart(full: Section) -> None:
    assert cells(full, "Indexes that no scan used")[0].text.endswith("pkey_0")
    used = table(full, "Indexes by their scans")
    assert [row[0].text[-1] for row in used.rows] == ["1", "2"]


def test_lag_age_and_wal_that_is_kept_are_told_with_their_words(full: Section) -> None:
    lag = cells(full, "Each standby")[1]
    assert lag.text == "not told"
    assert lag.note == (
        "streaming, async, written after 1.00 ms, flushed after 20.0 ms, 0 B not flushed,"
        " 28.6 MiB not replayed"
    )
    slot = cells(full, "WAL that each replication slot")[1]
    assert (slot.text, slot.note) == (
        "2.79 GiB", "reserved, active, 57.2 MiB more, keeps rows of 1,234 transactions"
    )  # fmt: skip
    age = table(full, "Transactions since")
    assert age.rows[0][1].note == "62% of the way, 76,543,211 to go"
    assert age.rows[1][1].note == "how far it may go is not told"


def test_what_is_zero_is_said_and_what_is_not_known_is_not(facts: Facts) -> None:
    rows = (
        LevelRow("replication", "slots", "1", (Level(0.0, 0.0), None)),
        LevelRow("replication", "standbys", "1", (Level(0.0, 0.0), None)),
    )
    told = replace(facts, views=ServerViews(levels=rows), stages=facts.stages[:2], telemetry=None)
    found = section(told)
    assert found is not None
    name, zero, unknown = cells(found, "Standbys, slots and archive")
    assert (name.note, zero.text, unknown.tone) == ("slots and standbys", "0", "quiet")


def test_a_view_that_a_version_lacks_is_named(facts: Facts) -> None:
    names = tuple(stage.name for stage in facts.stages)
    lacking = (
        Lacking(IO, "PostgreSQL 15 does not tell it, 16 and later do", "", names),
        Lacking("pressure", "the kernel has none", "", names),
        Lacking("standbys", "the role x may not read it", "GRANT", names[:1]),
    )
    costs = tuple(TelemetryCost(name, "default", 0.01, 10.0, 0.0) for name in names)
    seen = TelemetryFacts(costs, (), lacking)
    found = section(replace(facts, views=ServerViews(), telemetry=seen))
    assert found is not None
    _, points = found.blocks
    assert isinstance(points, Points)
    assert points.items == (
        "I/O by process, object and context: PostgreSQL 15 does not tell it, 16 and later do.",
        f"Standbys: the role x may not read it ({names[0]}).",
        'Buffer cache by relation: it is read with `protocol.telemetry = "full"` alone.',
    )
    assert section(replace(facts, views=ServerViews(), telemetry=None)) is None


def test_no_command_and_no_read_under_way_is_a_sentence(facts: Facts) -> None:
    told = replace(facts, views=ServerViews(read=("progress", "aio")), telemetry=None)
    found = section(told)
    assert found is not None
    texts = [one.text for one in found.blocks if isinstance(one, Text)]
    assert texts[-1].startswith("No vacuum, analyze, index build, COPY or the like was seen to run")
    assert "No look at pg_aios met a read or write under way." in texts


def test_of_several_servers_it_is_said_where_their_views_are(facts: Facts) -> None:
    several = ServersFacts(("a", "b"), "block", (), ())
    found = section(replace(facts, views=ServerViews(), servers=several))
    assert found is not None
    (text,) = found.blocks
    assert isinstance(text, Text)
    assert text.text == "The views of several servers are in the run file, by server."
