"""The server's own views in the windows: what was read at their ends, in between, and met.

A view that a version does not have, or a role may not read, has no rows and is not among those that
were read: nothing is zero that was not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from pgdyno.analysis.seen import (
    Seen,
    SeriesByTrial,
    TalliesByTrial,
    mean_of,
    seen_by_stage,
)
from pgdyno.analysis.sessions import Window, windows_of
from pgdyno.analysis.snapshots import SnapshotsByTrial
from pgdyno.analysis.view_ends import (
    buffer_rows,
    freeze_rows,
    index_rows,
    io_rows,
    slot_rows,
    standby_rows,
)
from pgdyno.analysis.view_facts import (
    About,
    AioRow,
    FreezeRow,
    FreezeUse,
    Level,
    LevelRow,
    LevelUnit,
    ProgressRow,
    ProgressUse,
    ServerViews,
    SlruRow,
    SlruUse,
)
from pgdyno.model.run import TrialRecord

_SLRU = "slru."
_AIO, _PROGRESS = "aio", "progress"
_SNAPSHOTS = ("pg_stat_io", "buffers", "indexes", "slots", "standbys")
_AGE, _MAX_AGE = "freeze.database_age", "freeze.max_age"

_RATES: tuple[tuple[str, LevelUnit, str], ...] = (  # of what, and the counter
    ("sessions open", "1", "database.session_s"),
    ("sessions that run a statement", "1", "database.active_s"),
    ("sessions idle in a transaction", "1", "database.idle_in_transaction_s"),
    ("sessions opened", "1/s", "database.sessions"),
    ("sessions lost with their client", "1/s", "database.sessions_abandoned"),
    ("sessions ended by an error", "1/s", "database.sessions_fatal"),
    ("sessions ended by somebody", "1/s", "database.sessions_killed"),
    ("parallel workers wanted", "1/s", "database.workers_wanted"),
    ("parallel workers launched", "1/s", "database.workers_launched"),
)
_GAUGES: tuple[tuple[About, str, LevelUnit, str], ...] = (
    ("sessions", "oldest transaction", "s", "transactions.oldest_s"),
    ("sessions", "longest idle in its transaction", "s", "transactions.idle_oldest_s"),
    ("sessions", "transactions that vacuum must keep", "1", "transactions.oldest_xmin_age"),
    ("sessions", "prepared transactions", "1", "transactions.prepared"),
    ("sessions", "oldest prepared transaction", "s", "transactions.prepared_oldest_s"),
    ("sessions", "WAL inserted and not flushed", "B", "wal.unflushed_bytes"),
    ("replication", "standbys", "1", "replication.standbys"),
    ("replication", "synchronous standbys", "1", "replication.synchronous"),
    ("replication", "WAL not sent", "B", "replication.sent_behind_bytes"),
    ("replication", "WAL not flushed there", "B", "replication.flush_behind_bytes"),
    ("replication", "WAL not replayed there", "B", "replication.behind_bytes"),
    ("replication", "lag of writes", "s", "replication.write_lag_s"),
    ("replication", "lag of flushes", "s", "replication.flush_lag_s"),
    ("replication", "lag of replay", "s", "replication.replay_lag_s"),
    ("replication", "slots", "1", "slots.count"),
    ("replication", "inactive slots", "1", "slots.inactive"),
    ("replication", "WAL that a slot keeps", "B", "slots.retained_bytes"),
    ("replication", "transactions that a slot keeps", "1", "slots.oldest_xmin_age"),
    ("replication", "WAL not archived", "B", "archive.behind_bytes"),
)


def server_views(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: SeriesByTrial,
    snapshots: SnapshotsByTrial,
    tallies: TalliesByTrial,
) -> ServerViews:
    """What they told.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
        snapshots: Likewise.
        tallies: Likewise.
    """
    seen = seen_by_stage(stages, trials, series)
    numbers = [one.number for one in trials]
    read = {one.name for number in numbers for one in snapshots.get(number, ())}
    met = {name for number in numbers for name in tallies.get(number, {})}
    return ServerViews(
        io=io_rows(stages, trials, snapshots),
        slru=_slru(seen),
        buffers=buffer_rows(stages, trials, snapshots),
        indexes=index_rows(stages, trials, snapshots),
        levels=_levels(seen),
        slots=slot_rows(stages, trials, snapshots),
        standbys=standby_rows(stages, trials, snapshots),
        progress=_progress(stages, trials, series, tallies),
        aio=_aio(stages, trials, tallies),
        freeze=(*_databases(seen), *freeze_rows(stages, trials, snapshots)),
        read=(
            *(name for name in _SNAPSHOTS if name in read),
            *(name for name in (_PROGRESS, _AIO) if name in met),
        ),
    )


def _slru(seen: Mapping[str, Sequence[Seen]]) -> tuple[SlruRow, ...]:
    """Each that is known of any stage, the most used first."""
    deltas = chain.from_iterable(one.result.deltas for each in seen.values() for one in each)
    caches = sorted({name.split(".")[1] for name in deltas if name.startswith(_SLRU)})
    rows = [SlruRow(one, tuple(_slru_use(one, windows) for windows in seen.values()))
            for one in caches]  # fmt: skip
    known = (row for row in rows if any(one is not None for one in row.stages))
    return tuple(sorted(known, key=lambda one: -_pages(one)))


def _slru_use(cache: str, windows: Sequence[Seen]) -> SlruUse | None:
    hits, reads, writes = (
        mean_of(one.per_s(f"{_SLRU}{cache}.{what}") for one in windows)
        for what in ("hits", "reads", "writes")
    )
    known = hits is not None and reads is not None and writes is not None
    return SlruUse(hits, reads, writes) if known else None  # type: ignore[arg-type]


def _pages(row: SlruRow) -> float:
    return max(
        (use.hits_per_s + use.reads_per_s + use.writes_per_s for use in row.stages if use),
        default=0.0,
    )


def _levels(seen: Mapping[str, Sequence[Seen]]) -> tuple[LevelRow, ...]:
    """Each that is known of any stage, zero or not."""
    rows = [
        LevelRow("sessions", what, unit, tuple(_rate(name, windows) for windows in seen.values()))
        for what, unit, name in _RATES
    ]
    rows += [
        LevelRow(about, what, unit, tuple(_gauge(name, windows) for windows in seen.values()))
        for about, what, unit, name in _GAUGES
    ]
    return tuple(row for row in rows if any(one is not None for one in row.stages))


def _rate(name: str, windows: Sequence[Seen]) -> Level | None:
    value = mean_of(one.per_s(name) for one in windows)
    return None if value is None else Level(value, None)


def _gauge(name: str, windows: Sequence[Seen]) -> Level | None:
    mean, most = mean_of(one.mean(name) for one in windows), _most(name, windows)
    return None if mean is None else Level(mean, most)


def _most(name: str, windows: Sequence[Seen]) -> float | None:
    return max((float(value) for one in windows for value in one.inside(name)), default=None)


def _databases(seen: Mapping[str, Sequence[Seen]]) -> tuple[FreezeRow, ...]:
    uses = tuple(
        None if (age := _most(_AGE, windows)) is None else FreezeUse(age, _most(_MAX_AGE, windows))
        for windows in seen.values()
    )
    return (FreezeRow("", uses),) if any(one is not None for one in uses) else ()


# -- tallies --------------------------------------------------------------------------------------


def _met(windows: Sequence[Window], dimensions: Sequence[str]) -> dict[tuple[str, ...], float]:
    """On average at a moment, by what they are told apart by."""
    looks = sum(int(one.ticks.sum()) for one in windows)
    found: dict[tuple[str, ...], float] = {}
    for window in windows:
        for key, row in zip(window.keys, window.counts, strict=True):
            if count := int(row.sum()):
                name = tuple(key[one] for one in dimensions)
                found[name] = found.get(name, 0.0) + count / looks
    return found


def _aio(
    stages: Sequence[str], trials: Sequence[TrialRecord], tallies: TalliesByTrial
) -> tuple[AioRow, ...]:
    names = ("operation", "state", "target")
    windows = [windows_of(_AIO, stage, trials, tallies) for stage in stages]
    met = [_met(each, names) for each in windows]
    rows = [
        AioRow(key[0], key[1], key[2],
               tuple(of.get(key, 0.0) if each else None
                     for of, each in zip(met, windows, strict=True)))
        for key in dict.fromkeys(chain.from_iterable(met))
    ]  # fmt: skip
    return tuple(sorted(rows, key=lambda one: -max(level or 0.0 for level in one.stages)))


def _progress(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: SeriesByTrial,
    tallies: TalliesByTrial,
) -> tuple[ProgressRow, ...]:
    windows = [windows_of(_PROGRESS, stage, trials, tallies) for stage in stages]
    met = [_met(each, ("command", "relation", "phase")) for each in windows]
    commands = sorted({command for of in met for command, _, _ in of})
    return tuple(
        ProgressRow(command, tuple(
            _progress_use(command, of, each, series) if each else None
            for of, each in zip(met, windows, strict=True)
        ))
        for command in commands
    )  # fmt: skip


def _progress_use(
    command: str,
    met: Mapping[tuple[str, ...], float],
    windows: Sequence[Window],
    series: SeriesByTrial,
) -> ProgressUse:
    seconds = sum(one.ticks.size for one in windows)
    parts = [(key[1], key[2], average * seconds) for key, average in met.items()
             if key[0] == command]  # fmt: skip
    furthest = [_furthest(command, one.record, series) for one in windows]
    return ProgressUse(
        sum(part for *_, part in parts),
        tuple(sorted(parts, key=lambda one: -one[2])),
        max((one for one in furthest if one is not None), default=None),
    )


def _furthest(command: str, record: TrialRecord, series: SeriesByTrial) -> float | None:
    """How far those that ran at once were at most; None: it is not told, or has no total."""
    assert record.result is not None
    of = series.get(record.number, {})
    done, total = (of.get(f"{_PROGRESS}.{command}.{what}") for what in ("done", "total"))
    if done is None or total is None or done.values.size != total.values.size:
        return None
    begin, end = record.result.window_ns
    inside = (done.unix_ns >= begin) & (done.unix_ns <= end) & (total.values > 0)
    return float(np.max(done.values[inside] / total.values[inside])) if inside.any() else None
