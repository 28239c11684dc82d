"""I/O by who does it, on what and why: pg_stat_io. Versions 16 to 18.

Series `pg_stat_io.<backend type>.<object>.<context>.<what>` for the processes that a load keeps
busy, every five seconds; the snapshot `pg_stat_io` holds every row at both ends of the window. What
a process never does to an object has no series. Sessions hand in what they counted at most once a
second: see `server_statistics`.

Times are there where the server takes them: `track_io_timing`, for WAL `track_wal_io_timing`.
Bytes are counted since 18; before, every operation moved one page.

Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_io.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pgdyno.model.server_views import IO, WAL_TIMES
from pgdyno.sample.lacking import major_of, not_before, switched_off
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Label, Missing, Row, Sampler, Snapshot, Subject
from pgdyno.sample.table_query import Rows

FIRST_MAJOR = 16
_BYTES_SINCE = _WAL_SINCE = 18
_BUSY = (
    "client backend", "background worker", "checkpointer", "background writer", "walwriter",
    "autovacuum worker", "io worker", "walsender", "startup",
)  # fmt: skip
_KEY = ("backend_type", "object", "context")
_COUNTS = ("reads", "writes", "writebacks", "extends", "fsyncs", "evictions")
_MORE = ("hits", "reuses")  # of the snapshot
_BYTES = {"read_bytes": "reads", "write_bytes": "writes", "extend_bytes": "extends"}
_TIMES = {
    "read_time": "read_s", "write_time": "write_s", "writeback_time": "writeback_s",
    "extend_time": "extend_s", "fsync_time": "fsync_s",
}  # fmt: skip
_WAL = "wal"
_TIMED = """
SELECT current_setting('track_io_timing')::boolean,
       current_setting('track_wal_io_timing')::boolean"""
_MS = 1000
_INTERVAL_S = 5.0


def query(major: int) -> str:
    """All rows, with the columns that this version has."""
    sizes = {name: f"{count} * op_bytes" for name, count in _BYTES.items()}
    if major >= _BYTES_SINCE:
        sizes = {name: name for name in _BYTES}
    told = {name: name for name in (*_COUNTS, *_MORE, *_TIMES)} | sizes
    numbers = ", ".join(f"({text})::float8 AS {name}" for name, text in told.items())
    return f"SELECT {', '.join(_KEY)}, {numbers} FROM pg_stat_io"  # noqa: S608  our words


def row_of(rows: Iterable[Mapping[str, Any]], timed: Mapping[bool, bool]) -> Row:
    """The values of the busy processes, by the names of their series.

    Args:
        rows: Of the view.
        timed: Whether times are taken: of WAL (True), of everything else (False).
    """
    values: Row = {}
    for row in rows:
        if row["backend_type"] not in _BUSY:
            continue
        name = ".".join(str(row[part]).replace(" ", "_") for part in _KEY)
        told = {what: row[what] for what in (*_COUNTS, *_BYTES)} | times_of(row, timed)
        values |= {
            f"pg_stat_io.{name}.{what}": float(value)
            for what, value in told.items()
            if value is not None
        }
    return values


def times_of(row: Mapping[str, Any], timed: Mapping[bool, bool]) -> dict[str, float | None]:
    """The times of a row; None: it has none, or the server takes none; see `row_of`."""
    is_timed = timed[row["object"] == _WAL]
    return {ours: _seconds(row[theirs]) if is_timed else None for theirs, ours in _TIMES.items()}


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else milliseconds / _MS


def _unit(name: str) -> str:
    return {"bytes": "B", "s": "s"}.get(name.rpartition("_")[2], "1")


def sampler(subject: Subject) -> Found:
    """Series and snapshot; None without a session to ask."""
    if (session := subject.session) is None:
        return None
    major = major_of(session)
    if major < FIRST_MAJOR:
        return not_before(IO, major, FIRST_MAJOR)
    settings = session.execute(_TIMED).fetchone()
    assert settings is not None
    timed = {False: bool(settings[0]), True: bool(settings[1])}
    prepared = Prepared(session, query(major))
    names = (*_KEY, *_COUNTS, *_MORE, *_TIMES, *_BYTES)

    def rows() -> Rows:
        return [dict(zip(names, row, strict=True)) for row in prepared.rows()]

    def take() -> Row:
        return row_of(rows(), timed)

    columns = tuple(Column(name, _unit(name)) for name in take())
    counted, times = (*_COUNTS, *_MORE, *_BYTES), tuple(_TIMES.values())
    found: list[Sampler | Snapshot | Missing] = [
        Sampler("I/O by process", columns, take, _INTERVAL_S),
        Snapshot(
            "pg_stat_io",
            (*map(Label, _KEY), *(Column(name, _unit(name)) for name in (*counted, *times))),
            lambda: [
                {name: row[name] for name in (*_KEY, *counted)} | times_of(row, timed)
                for row in rows()
            ],
        ),
    ]
    if not timed[True] and major >= _WAL_SINCE:  # before, `server_statistics` has them
        found.append(switched_off(WAL_TIMES, "track_wal_io_timing"))
    return found
