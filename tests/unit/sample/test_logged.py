"""A log that is read by SQL: its lines in UTC, and what it tells of a window."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest

from pgdyno.model.event_detail import EventDetail
from pgdyno.model.run import Cell, Event, SnapshotRows
from pgdyno.sample.logged import in_utc, left_out_bytes, told

BERLIN = ZoneInfo("Europe/Berlin")


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("2026-07-01 12:00:00.123 CEST [17] LOG:  checkpoint starting: time",
         "2026-07-01 10:00:00.123 UTC [17] LOG:  checkpoint starting: time"),
        ("2026-12-01 00:30:00.000 CET [17] bench@load ERROR:  deadlock detected",
         "2026-11-30 23:30:00.000 UTC [17] ERROR:  deadlock detected"),
        ("2026-10-25 02:30:00.000 CEST [1] LOG:  first of two such hours",
         "2026-10-25 00:30:00.000 UTC [1] LOG:  first of two such hours"),
        ("2026-10-25 02:30:00.000 CET [1] LOG:  second",
         "2026-10-25 01:30:00.000 UTC [1] LOG:  second"),
        ("\tbuffer usage: 1 hits", "\tbuffer usage: 1 hits"),
    ],
)  # fmt: skip
def test_a_line_is_read_in_utc_and_without_what_stands_before_its_level(
    line: str, read: str
) -> None:
    assert list(in_utc(line, BERLIN)) == [read]


@pytest.mark.parametrize("stamp", ["2026-07-01 12:00:00.000 MST", "2026-13-01 12:00:00.000 CET"])
def test_a_time_that_is_none_of_its_zone_is_left_out(stamp: str) -> None:
    assert list(in_utc(f"{stamp} [1] LOG:  checkpoint starting: time", BERLIN)) == []


def test_a_log_that_was_read_since_before_the_window_tells_of_it() -> None:
    event = '{"table": "load.public.stock", "wal_bytes": 17}'
    rows: tuple[dict[str, Cell], ...] = (
        {"kind": "read", "start_ns": 5, "end_ns": None, "detail": '{"left_out_bytes": 9}'},
        {"kind": "autovacuum", "start_ns": 11, "end_ns": 19, "detail": event},
        {"kind": "checkpoint", "start_ns": 12, "end_ns": None, "detail": '{"cause": "time"}'},
    )
    looks = [SnapshotRows("log", at, 0, (), rows) for at in ("begin", "end")]
    found = told(looks, (10, 20))
    assert found is not None
    assert found.events == (
        Event("autovacuum", 11, 19, EventDetail(table="load.public.stock", wal_bytes=17)),
        Event("checkpoint", 12, None, EventDetail(cause="time")),
    )
    assert found.bad == {}, "errors of others say nothing against the load"
    assert left_out_bytes(looks) == 9
    assert told(looks, (4, 20)) is None, "what was before it was read is not known"
    assert told(looks[:1], (10, 20)) is None
