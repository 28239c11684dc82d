"""Views that were read at both ends of the windows: I/O, buffers, indexes, slots, standbys, age.

Counters count as those of statements do: see `snapshots`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import TypeVar

from pgdyno.analysis.snapshots import (
    Ends,
    Row,
    SnapshotsByTrial,
    ends_of,
    grown_by,
    is_number,
    mean_of_known,
    number,
)
from pgdyno.analysis.view_facts import (
    BufferRow,
    BufferUse,
    FreezeRow,
    FreezeUse,
    IndexRow,
    IndexUse,
    IoRow,
    IoUse,
    SlotRow,
    SlotUse,
    StandbyRow,
    StandbyUse,
)
from pgdyno.model.resets import DATABASES, began_anew
from pgdyno.model.run import TrialRecord

_IO = "pg_stat_io"
_IO_KEY = ("backend_type", "object", "context")
_MOVED = ("reads", "writes", "extends")
_TIMED = {"read_s": "reads", "write_s": "writes", "writeback_s": "writebacks",
          "extend_s": "extends", "fsync_s": "fsyncs"}  # fmt: skip
_BYTES = {"read_bytes": "reads", "write_bytes": "writes", "extend_bytes": "extends"}
_WORK = (*_MOVED, "writebacks", "fsyncs", "evictions", "reuses")

Use = TypeVar("Use")
Key = tuple[str, ...]
Trials = Sequence[TrialRecord]


def _rows(of_stages: Sequence[Mapping[Key, Use]]) -> list[tuple[Key, tuple[Use | None, ...]]]:
    """Each key with what each stage has of it."""
    keys = dict.fromkeys(key for of_stage in of_stages for key in of_stage)
    return [(key, tuple(of_stage.get(key) for of_stage in of_stages)) for key in keys]


def _most(stages: Iterable[Use | None], measure: Callable[[Use], float]) -> float:
    return max((measure(use) for use in stages if use is not None), default=0.0)


def _by(names: Sequence[str], rows: Iterable[Row]) -> dict[Key, Row]:
    return {tuple(str(row[name]) for name in names): row for row in rows}


def _known(row: Row | None, name: str) -> float | None:
    """A number of a row; None: the file has no such column, or it was not told."""
    value = row.get(name) if row is not None else None
    return number(value) if is_number(value) else None


# -- I/O ------------------------------------------------------------------------------------------


def io_rows(
    stages: Sequence[str], trials: Trials, snapshots: SnapshotsByTrial
) -> tuple[IoRow, ...]:
    """Who did I/O on what and why, those first that did most."""
    counted = [one for one in trials if _IO not in began_anew(snapshots.get(one.number, ()))]
    uses = [_io_uses(ends_of(_IO, stage, counted, snapshots)) for stage in stages]
    rows = [
        IoRow(key[0], key[1], key[2], found)
        for key, found in _rows(uses)
        if _most(found, _work) > 0
    ]
    return tuple(sorted(rows, key=lambda one: -_most(one.stages, _work)))


def _work(use: IoUse) -> float:
    return sum(use.per_s.get(name, 0.0) for name in _WORK)


def _io_uses(windows: Sequence[Ends]) -> dict[Key, IoUse]:
    total: dict[Key, dict[str, float]] = {}
    seconds = 0.0
    for window in windows:
        before = _by(_IO_KEY, window.begin)
        grown = {
            key: grown_by(before.get(key), row) for key, row in _by(_IO_KEY, window.end).items()
        }
        if any(value < 0 for each in grown.values() for value in each.values()):
            continue  # it was reset, and no moment tells
        seconds += window.seconds
        for key, each in grown.items():
            added = total.setdefault(key, {})
            for name, value in each.items():
                added[name] = added.get(name, 0.0) + value
    return {key: _io_use(added, seconds) for key, added in total.items()}


def _io_use(total: Mapping[str, float], seconds: float) -> IoUse:
    counts = {name: value for name, value in total.items() if name not in (*_TIMED, *_BYTES)}
    return IoUse(
        per_s={name: value / seconds for name, value in counts.items()},
        bytes_per_s={of: total[name] / seconds for name, of in _BYTES.items() if name in total},
        mean_s={of: total[name] / counts[of] for name, of in _TIMED.items()
                if name in total and counts.get(of)},
    )  # fmt: skip


# -- buffers --------------------------------------------------------------------------------------


def buffer_rows(
    stages: Sequence[str], trials: Trials, snapshots: SnapshotsByTrial
) -> tuple[BufferRow, ...]:
    """What the buffer cache held, the most first."""
    uses = [_buffer_uses(ends_of("buffers", stage, trials, snapshots)) for stage in stages]
    rows = [BufferRow(key[0], key[1], found) for key, found in _rows(uses)]
    return tuple(sorted(rows, key=lambda one: -_most(one.stages, lambda use: use.end)))


def _buffer_uses(windows: Sequence[Ends]) -> dict[Key, BufferUse]:
    names = ("relation", "kind")
    looks = [(_by(names, one.begin), _by(names, one.end)) for one in windows]
    keys = dict.fromkeys(key for look in looks for side in look for key in side)
    totals = [sum(_known(row, "buffers") or 0.0 for row in end.values()) for _, end in looks]

    def mean(key: Key, side: int, name: str = "buffers") -> float:
        return fmean(_known(look[side].get(key), name) or 0.0 for look in looks)

    return {
        key: BufferUse(
            begin=mean(key, 0),
            end=mean(key, 1),
            share=mean(key, 1) / fmean(totals) if any(totals) else 0.0,
            dirty=mean(key, 1, "dirty"),
            usage=mean_of_known([_known(end.get(key), "usage") for _, end in looks]),
        )
        for key in keys
    }


# -- indexes --------------------------------------------------------------------------------------


def index_rows(
    stages: Sequence[str], trials: Trials, snapshots: SnapshotsByTrial
) -> tuple[IndexRow, ...]:
    """What became of each index, the most used first, then the largest."""
    counted = [one for one in trials if DATABASES not in began_anew(snapshots.get(one.number, ()))]
    uses = [_index_uses(ends_of("indexes", stage, counted, snapshots)) for stage in stages]
    rows = [IndexRow(key[0], key[1], found) for key, found in _rows(uses)]
    return tuple(sorted(rows, key=lambda one: (
        -_most(one.stages, lambda use: use.scans_per_s), -_most(one.stages, lambda use: use.bytes)
    )))  # fmt: skip


_OF_SCANS = ("scans", "rows_read", "rows_fetched")


def _index_uses(windows: Sequence[Ends]) -> dict[Key, IndexUse]:
    names = ("relation", "of_table")
    found: dict[Key, list[IndexUse]] = {}
    for window in windows:
        before = _by(names, window.begin)
        for key, row in _by(names, window.end).items():
            grown = grown_by(before.get(key), row)
            if key in before and min(grown[name] for name in _OF_SCANS) >= 0:
                found.setdefault(key, []).append(IndexUse(
                    grown["scans"] / window.seconds, grown["rows_read"] / window.seconds,
                    number(row["bytes"]), grown["bytes"],
                    grown["rows_fetched"] / window.seconds,
                ))  # fmt: skip
    return {key: _mean_index(uses) for key, uses in found.items()}


def _mean_index(uses: Sequence[IndexUse]) -> IndexUse:
    return IndexUse(
        fmean(one.scans_per_s for one in uses),
        fmean(one.rows_per_s for one in uses),
        fmean(one.bytes for one in uses),
        fmean(one.grown_bytes for one in uses),
        fmean(one.fetched_per_s for one in uses),
    )


# -- replication ----------------------------------------------------------------------------------


def slot_rows(
    stages: Sequence[str], trials: Trials, snapshots: SnapshotsByTrial
) -> tuple[SlotRow, ...]:
    """Each replication slot."""
    uses = [_slot_uses(ends_of("slots", stage, trials, snapshots)) for stage in stages]
    return tuple(SlotRow(key[0], key[1], found) for key, found in _rows(uses))


def _slot_uses(windows: Sequence[Ends]) -> dict[Key, SlotUse]:
    names = ("slot", "type")
    looks = [(_by(names, one.begin), _by(names, one.end)) for one in windows]
    return {
        key: SlotUse(
            status=_slot_status([end[key] for _, end in looks if key in end][-1]),
            retained_bytes=mean_of_known(
                [_known(end.get(key), "retained_bytes") for _, end in looks]
            ),
            grown_bytes=mean_of_known([_more(*look, key, "retained_bytes") for look in looks]),
            xmin_age=mean_of_known([_known(end.get(key), "xmin_age") for _, end in looks]),
        )
        for key in dict.fromkeys(key for _, end in looks for key in end)
    }


def _more(begin: Mapping[Key, Row], end: Mapping[Key, Row], key: Key, name: str) -> float | None:
    then, now = _known(begin.get(key), name), _known(end.get(key), name)
    return None if then is None or now is None else now - then


def _slot_status(row: Row) -> str:
    active = "active" if row["active"] else "inactive"
    return ", ".join(part for part in (str(row["wal_status"]), active) if part)


def standby_rows(
    stages: Sequence[str], trials: Trials, snapshots: SnapshotsByTrial
) -> tuple[StandbyRow, ...]:
    """Each standby; those of one name are one, by the one furthest behind."""
    uses = [_standby_uses(ends_of("standbys", stage, trials, snapshots)) for stage in stages]
    return tuple(StandbyRow(key[0], found) for key, found in _rows(uses))


_LAGS = ("write_lag_s", "flush_lag_s", "replay_lag_s", "flush_behind_bytes", "replay_behind_bytes")


def _standby_uses(windows: Sequence[Ends]) -> dict[Key, StandbyUse]:
    found: dict[Key, list[dict[str, float | None]]] = {}
    status: dict[Key, str] = {}
    for window in windows:
        alike: dict[Key, list[Row]] = {}
        for row in window.end:
            alike.setdefault((str(row["standby"]),), []).append(row)
        for key, rows in alike.items():
            told = (str(rows[-1][name]) for name in ("state", "sync_state"))
            status[key] = ", ".join(part for part in told if part)
            found.setdefault(key, []).append(
                {name: _furthest([_known(row, name) for row in rows]) for name in _LAGS}
            )
    return {
        key: StandbyUse(
            status[key], *(mean_of_known([one[name] for one in lags]) for name in _LAGS)
        )
        for key, lags in found.items()
    }


def _furthest(values: Sequence[float | None]) -> float | None:
    return max((one for one in values if one is not None), default=None)


# -- freezing -------------------------------------------------------------------------------------


def freeze_rows(
    stages: Sequence[str], trials: Trials, snapshots: SnapshotsByTrial
) -> tuple[FreezeRow, ...]:
    """How old each table is, the oldest first."""
    uses = [_freeze_uses(ends_of("tables", stage, trials, snapshots)) for stage in stages]
    rows = [FreezeRow(key[0], found) for key, found in _rows(uses)]
    return tuple(sorted(rows, key=lambda one: -_most(one.stages, lambda use: use.age)))


def _freeze_uses(windows: Sequence[Ends]) -> dict[Key, FreezeUse]:
    found: dict[Key, FreezeUse] = {}
    for window in windows:
        for key, row in _by(("relation",), window.end).items():
            age = _known(row, "freeze_age")
            if age is not None and (key not in found or found[key].age < age):
                found[key] = FreezeUse(age, _known(row, "freeze_max_age"))
    return found
