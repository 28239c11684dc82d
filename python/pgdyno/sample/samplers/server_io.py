"""I/O by who does it, on what and why: pg_stat_io. Versions 16 to 18.

Series `pg_stat_io.<backend type>.<object>.<context>.<what>` for the processes that a load keeps
busy; the snapshot `pg_stat_io` holds every row at both ends of the window. What a process never
does to an object has no series. Sessions hand in what they counted at most once a second: see
`server_statistics`.

Times are there where the server takes them: `track_io_timing`, for WAL `track_wal_io_timing`.
Bytes are counted since 18; before, every operation moved one page.

Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_io.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from psycopg.rows import dict_row

from pgdyno.sample.rights import major_of
from pgdyno.sample.sampler import Column, Found, Label, Missing, Row, Sampler, Snapshot, Subject
from pgdyno.sample.table_query import Rows

FIRST_MAJOR = 16
_BYTES_SINCE = 18
_BUSY = (
    "client backend", "background worker", "checkpointer", "background writer", "walwriter",
    "autovacuum worker", "io worker", "walsender", "startup",
)  # fmt: skip
_KEY = ("backend_type", "object", "context")
_COUNTS = ("reads", "writes", "extends", "fsyncs", "evictions")
_BYTES = {"read_bytes": "reads", "write_bytes": "writes", "extend_bytes": "extends"}
_TIMES = {
    "read_time": "read_s", "write_time": "write_s", "extend_time": "extend_s",
    "fsync_time": "fsync_s",
}  # fmt: skip
_WAL = "wal"
_TIMED = """
SELECT current_setting('track_io_timing')::boolean,
       current_setting('track_wal_io_timing')::boolean"""
_MS = 1000


def query(major: int) -> str:
    """All rows, with the columns that this version has."""
    sizes = ", ".join(
        name if major >= _BYTES_SINCE else f"{count} * op_bytes AS {name}"
        for name, count in _BYTES.items()
    )
    plain = ", ".join((*_KEY, *_COUNTS, "hits", "reuses", "writebacks", *_TIMES))
    return f"SELECT {plain}, {sizes} FROM pg_stat_io"  # noqa: S608  no word of anybody's


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
        told = {what: row[what] for what in (*_COUNTS, *_BYTES)}
        if timed[row["object"] == _WAL]:
            told |= {ours: _seconds(row[theirs]) for theirs, ours in _TIMES.items()}
        values |= {
            f"pg_stat_io.{name}.{what}": float(value)
            for what, value in told.items()
            if value is not None
        }
    return values


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
        return Missing("pg_stat_io", f"PostgreSQL {major} has no pg_stat_io, {FIRST_MAJOR} has")
    text = query(major)
    settings = session.execute(_TIMED).fetchone()
    assert settings is not None
    timed = {False: bool(settings[0]), True: bool(settings[1])}

    cursor = session.cursor(row_factory=dict_row)

    def rows() -> Rows:
        return cursor.execute(text.encode(), prepare=True).fetchall()

    def take() -> Row:
        return row_of(rows(), timed)

    columns = tuple(Column(name, _unit(name)) for name in take())
    counted = (*_COUNTS, "hits", "reuses", "writebacks", *_BYTES)
    found: list[Sampler | Snapshot | Missing] = [
        Sampler("pg_stat_io", columns, take),
        Snapshot(
            "pg_stat_io",
            (*map(Label, _KEY), *(Column(name, _unit(name)) for name in counted)),
            lambda: [{name: row[name] for name in (*_KEY, *counted)} for row in rows()],
        ),
    ]
    for name, what, is_on in (
        ("track_io_timing", "times of data I/O", timed[False]),
        ("track_wal_io_timing", "times of WAL I/O", timed[True]),
    ):
        if not is_on:
            remedy = f"Set {name} = on, which reads the clock twice for each operation."
            found.append(Missing(what, f"{name} is off", remedy))
    return found
