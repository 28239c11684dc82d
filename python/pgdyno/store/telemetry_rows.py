"""What telemetry leaves in a run file beside records: columns of samples, tallies and snapshots.

Columns that were sampled together share their times: of a long run with hundreds of them these
would be most of the file.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pgdyno.model.record_json import from_plain, json_value
from pgdyno.model.run import Series, SnapshotRows, TallySeries
from pgdyno.model.wording import plural
from pgdyno.store.series_bytes import UNPACKED_BYTES_MAX, inflate, pack, unpack_float, unpack_int

SCHEMA = """
CREATE TABLE times (
  trial INTEGER NOT NULL REFERENCES trial, number INTEGER NOT NULL, unix_ns BLOB NOT NULL,
  PRIMARY KEY (trial, number)
) STRICT;
CREATE TABLE series (
  trial INTEGER NOT NULL REFERENCES trial, name TEXT NOT NULL, unit TEXT NOT NULL,
  kind TEXT NOT NULL, times INTEGER NOT NULL, samples BLOB NOT NULL, PRIMARY KEY (trial, name)
) STRICT;
CREATE TABLE tally (
  trial INTEGER NOT NULL REFERENCES trial, name TEXT NOT NULL, dimensions TEXT NOT NULL,
  keys BLOB NOT NULL, seconds BLOB NOT NULL, key BLOB NOT NULL, counts BLOB NOT NULL,
  tick_seconds BLOB NOT NULL, ticks BLOB NOT NULL, PRIMARY KEY (trial, name)
) STRICT;
CREATE TABLE snapshot (
  trial INTEGER NOT NULL REFERENCES trial, name TEXT NOT NULL, at TEXT NOT NULL,
  unix_ns INTEGER NOT NULL, columns TEXT NOT NULL, rows BLOB NOT NULL,
  PRIMARY KEY (trial, name, at)
) STRICT;
"""
TABLES = ("times", "series", "tally", "snapshot")
"""Each with a column `trial`."""
_TRIAL_BYTES_MAX = 4 * UNPACKED_BYTES_MAX
SINCE = 7
"""The first format with these tables; before, series held their own times, and nothing else was."""


def put_series(db: sqlite3.Connection, trial: int, series: Iterable[Series]) -> None:
    """Add the series of a trial."""
    numbers: dict[bytes, int] = {}
    for one in series:
        if (times := one.unix_ns.tobytes()) not in numbers:
            numbers[times] = len(numbers)
            row = (trial, numbers[times], pack(one.unix_ns))
            db.execute("INSERT INTO times VALUES (?, ?, ?)", row)
        db.execute(
            "INSERT INTO series VALUES (?, ?, ?, ?, ?, ?)",
            (trial, one.name, one.unit, one.kind, numbers[times], pack(one.values)),
        )


def series_of(db: sqlite3.Connection, version: int, trial: int) -> dict[str, Series]:
    """The series of a trial, by name, of a file of a format."""
    query = "SELECT name, unit, kind, unix_ns, samples FROM series WHERE trial = ? ORDER BY name"
    if version >= SINCE:
        query = (
            "SELECT name, unit, kind, unix_ns, samples FROM series"
            " LEFT JOIN times ON times.trial = series.trial AND times.number = series.times"
            " WHERE series.trial = ? ORDER BY name"
        )
    times: dict[bytes, npt.NDArray[np.int64]] = {}
    found, size_bytes = {}, 0
    for name, unit, kind, unix_ns, samples in db.execute(query, (trial,)).fetchall():
        if unix_ns not in times:
            times[unix_ns] = unpack_int(unix_ns)
        values = unpack_float(samples)
        _require_alike(f"series {name}", times[unix_ns], values)
        size_bytes = _require_bounded("series", size_bytes + values.nbytes)
        found[name] = Series(name, unit, kind, times[unix_ns], values)
    return found


def put_tallies(db: sqlite3.Connection, trial: int, tallies: Iterable[TallySeries]) -> None:
    """Add the tallies of a trial."""
    for one in tallies:
        columns = (one.seconds, one.key, one.counts, one.tick_seconds, one.ticks)
        db.execute(
            "INSERT INTO tally VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (trial, one.name, json.dumps(one.dimensions), _pack_json(one.keys),
             *(pack(column) for column in columns)),
        )  # fmt: skip


def tallies_of(db: sqlite3.Connection, version: int, trial: int) -> dict[str, TallySeries]:
    """The tallies of a trial, by name; a format without them has none."""
    if version < SINCE:
        return {}
    rows = db.execute(
        "SELECT name, dimensions, keys, seconds, key, counts, tick_seconds, ticks FROM tally"
        " WHERE trial = ? ORDER BY name",
        (trial,),
    ).fetchall()
    found, size_bytes = {}, 0
    for row in rows:
        found[row[0]] = one = _tally(*row)
        columns = (one.seconds, one.key, one.counts, one.tick_seconds, one.ticks)
        grown = size_bytes + sum(column.nbytes for column in columns)
        size_bytes = _require_bounded("tallies", grown)
    return found


def _tally(name: str, dimensions: str, keys: bytes, *columns: bytes) -> TallySeries:
    named = from_plain(tuple[str, ...], json_value(dimensions))
    met = from_plain(tuple[tuple[str, ...], ...], _unpack_json(keys))
    seconds, key, counts, tick_seconds, ticks = map(unpack_int, columns)
    _require_alike(f"tally {name}", seconds, key, counts)
    _require_alike(f"ticks of tally {name}", tick_seconds, ticks)
    if key.size and not 0 <= key.min() <= key.max() < len(met):
        has = plural(len(met), "key")
        raise ValueError(f"tally {name} has {has} and refers to number {key.max()}")
    if any(len(one) != len(named) for one in met):
        has = plural(len(named), "dimension")
        raise ValueError(f"tally {name} has {has}, and keys of other lengths")
    return TallySeries(name, named, met, seconds, key, counts, tick_seconds, ticks)


def put_snapshots(db: sqlite3.Connection, trial: int, snapshots: Iterable[SnapshotRows]) -> None:
    """Add the snapshots of a trial."""
    for one in snapshots:
        columns = json.dumps([(c.name, c.unit, c.kind) for c in one.columns])
        cells = [[row[c.name] for c in one.columns] for row in one.rows]
        db.execute(
            "INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?)",
            (trial, one.name, one.at, one.unix_ns, columns, _pack_json(cells)),
        )


def snapshots_of(db: sqlite3.Connection, version: int, trial: int) -> list[SnapshotRows]:
    """The snapshots of a trial by name, begin before end; a format without them has none."""
    if version < SINCE:
        return []
    rows = db.execute(
        "SELECT name, at, unix_ns, columns, rows FROM snapshot WHERE trial = ? ORDER BY name, at",
        (trial,),
    ).fetchall()
    return [_snapshot(*row) for row in rows]


def _snapshot(name: str, at: str, unix_ns: int, columns: str, rows: bytes) -> SnapshotRows:
    told = [dict(zip(("name", "unit", "kind"), one, strict=True)) for one in json_value(columns)]
    names = [one["name"] for one in told]
    cells = [dict(zip(names, row, strict=True)) for row in _unpack_json(rows)]
    plain = {"name": name, "at": at, "unix_ns": unix_ns, "columns": told, "rows": cells}
    return from_plain(SnapshotRows, plain)


def _pack_json(value: object) -> bytes:
    return zlib.compress(json.dumps(value, ensure_ascii=False).encode(), 6)


def _unpack_json(blob: bytes) -> Any:  # noqa: ANN401  whatever stands in the file
    return json_value(inflate(blob))


def _require_bounded(what: str, size_bytes: int) -> int:
    """The same, as long as that is what a trial can have left."""
    if size_bytes > _TRIAL_BYTES_MAX:
        raise ValueError(f"{what} are {size_bytes} bytes, allowed are {_TRIAL_BYTES_MAX}")
    return size_bytes


def _require_alike(what: str, *columns: Sequence[float] | npt.NDArray[Any]) -> None:
    sizes = [len(column) for column in columns]
    if len(set(sizes)) > 1:
        raise ValueError(f"{what} has columns of different lengths: {', '.join(map(str, sizes))}")
