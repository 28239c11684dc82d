"""Who blocks whom: which sessions waited for which locks, and what those did that stood in the way.

From the tally of locks, which is asked for twice a second while anybody is seen to wait: waits that
are over sooner are met more rarely than their share, or not at all. Who stands in the way is the
first that the server names, which may itself wait for another. How deep a queue was is told by the
tally of sessions, which knows who stands in front of all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.session_facts import Blocking, Queue, StageSessions
from pgdyno.analysis.sessions import LOCKS, TALLY, Key, Window, windows_of
from pgdyno.model.run import TallySeries, TrialRecord
from pgdyno.stats.sampled import averages

NS = 1_000_000_000
_SEED = 20_261_129  # of the intervals: one run file, one report
_Kind = tuple[str, str, str, str, str, str, str, str]
_ROUNDED = 1e-9  # of a mean that is to be a whole number


def with_blocking(
    seen: StageSessions,
    trials: Sequence[TrialRecord],
    tallies: Mapping[int, Mapping[str, TallySeries]],
) -> StageSessions:
    """The same sessions of a stage, with who blocked whom.

    Args:
        seen: What they did.
        trials: Those whose numbers may be used.
        tallies: Of each trial, by its number and their names.
    """
    queued = windows_of(LOCKS, seen.stage, trials, tallies)
    mine = [one for one in trials if one.stage == seen.stage]
    queues = [_deepest(one, tally) for one in mine
              if (tally := tallies.get(one.number, {}).get(TALLY))]  # fmt: skip
    known = [one for one in queues if one is not None]
    deepest = max(known, key=lambda one: one.sessions, default=None)
    return replace(seen, blocking=_blocking(queued, seen.seconds), deepest=deepest)


def _blocking(windows: Sequence[Window], seconds: int) -> tuple[Blocking, ...]:
    kinds = dict.fromkeys(_kind(key) for one in windows for key in one.keys)
    if not kinds:
        return ()
    places = {kind: place for place, kind in enumerate(kinds)}
    counts = np.concatenate([_added(one, places) for one in windows], axis=1)
    ticks = np.concatenate([one.ticks for one in windows])
    found = averages(counts, ticks, np.random.default_rng(_SEED))
    most, does = (counts / ticks).max(axis=1), _does(windows)
    rows = [
        Blocking(
            *kind,
            does[kind],
            float(value),
            *_ends(low, high),
            float(value) * seconds,
            _whole(deepest),
        )
        for kind, (value, low, high), deepest in zip(kinds, found, most, strict=True)
        if value > 0
    ]
    return tuple(sorted(rows, key=lambda one: -one.average))


def _kind(key: Key) -> _Kind:
    """What rows are told apart by, in the order of the record."""
    return (
        key["kind"], key["statement"], key["lock"], key["mode"], key["relation"],
        key["blocker_kind"], key["blocker_statement"], key["blocker_state"],
    )  # fmt: skip


def _does(windows: Sequence[Window]) -> dict[_Kind, dict[str, float]]:
    """What the blockers of each kind did, the shares of their time, the largest first."""
    met: dict[_Kind, dict[str, int]] = {}
    for window in windows:
        for key, row in zip(window.keys, window.counts, strict=True):
            # A prepared transaction has no class of waits, and is told as what it is.
            does = key["blocker_class"] or key["blocker"]
            of = met.setdefault(_kind(key), {})
            of[does] = of.get(does, 0) + int(row.sum())
    return {
        kind: {
            does: count / sum(of.values())
            for does, count in sorted(of.items(), key=lambda one: -one[1])
            if count
        }
        for kind, of in met.items()
    }


def _added(window: Window, places: Mapping[_Kind, int]) -> npt.NDArray[np.int64]:
    added = np.zeros((len(places), window.ticks.size), dtype=np.int64)
    for key, row in zip(window.keys, window.counts, strict=True):
        added[places[_kind(key)]] += row
    return added


def _ends(low: float, high: float) -> tuple[float | None, float | None]:
    return (None, None) if np.isnan(low) else (float(low), float(high))


def _whole(mean: float) -> int:
    """The least that the largest of some counts can be, by their mean."""
    return ceil(mean - _ROUNDED)


def _deepest(record: TrialRecord, tally: TallySeries) -> Queue | None:
    """The second in which most sessions waited behind one process; None: none did."""
    if record.result is None:
        return None
    begin, end = record.result.window_ns
    heads = [_head(key[tally.dimensions.index("blocker")]) for key in tally.keys]
    queued = np.array([bool(process) for process, _ in heads], dtype=np.bool_)
    met = queued[tally.key] & (tally.seconds * NS >= begin) & ((tally.seconds + 1) * NS <= end)
    if not met.any():
        return None
    names = sorted({process for process, _ in heads})
    places = {process: place for place, process in enumerate(names)}
    behind = np.array([places[process] for process, _ in heads], dtype=np.int64)[tally.key[met]]
    first = int(tally.tick_seconds[0])
    at, which = np.unique(
        (tally.seconds[met] - first) * len(names) + behind, return_inverse=True
    )  # of each second and process that anybody waited behind
    waited = np.bincount(which, weights=tally.counts[met])
    seconds = first + at // len(names)
    means = waited / tally.ticks[np.searchsorted(tally.tick_seconds, seconds)]
    most = int(np.argmax(means))
    then = tally.key[met][which == most]
    return Queue(
        _whole(float(means[most])), record.round, (int(seconds[most]) * NS - begin) / NS,
        tuple(sorted({heads[key][1] for key in then})),
    )  # fmt: skip


def _head(blocker: str) -> tuple[str, str]:
    """Who stands in front, and what it does; empty: nobody, or not known."""
    deed, _, process = blocker.rpartition(" ")
    return (process, deed) if process.isdecimal() else (blocker, blocker)
