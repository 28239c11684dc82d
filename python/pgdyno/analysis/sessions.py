"""Active sessions of the windows, from the tally that the recorder kept.

Active is a session of the load that runs a statement or has a transaction open. What a transaction
does between two statements is waiting for its client: class `client`. Background processes are
counted apart, where they do not idle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.extremes import extremes
from pgdyno.analysis.session_facts import (
    GROUPS,
    REST,
    RoundSessions,
    SessionLine,
    SessionShare,
    StageSessions,
)
from pgdyno.analysis.trials import POINTS_MAX
from pgdyno.catalog.waits import OTHER, wait_classes, wait_groups
from pgdyno.model.run import TallySeries, TrialRecord
from pgdyno.model.wait import CPU, CPU_WAIT
from pgdyno.stats.sampled import averages

TALLY, LOCKS = "sessions", "locks"
NAMED_MAX = 12  # kinds of sessions in a table; the others are added up
NS = 1_000_000_000
_SEED = 20_261_125  # of the intervals: one run file, one report
_OF_A_LOAD = ("backend", "parallel_worker")
_IN_TRANSACTION = ("idle in transaction", "idle in transaction (aborted)")
_LOCK = "lock"  # the group of waits for what other transactions hold
_DISABLED = "disabled"  # state of who does not tell it
_CLIENT, _IDLE = "client", "idle"
_LEAST = 1e-9  # of a sum: less is what rounding leaves
_NOT_MET = "not seen yet"
_OF_SEVERAL = "any: several send it"  # BEGIN, COMMIT
_NOT_OURS = "none that the load is known by"
_NO_RELATION = "no relation told"
_NOT_QUEUED = "waits for no lock"
_QUEUED = "waits for a lock"
_WAS_SHORT = "not seen: the wait was over before it was asked"
_NO_EVENT = "none, in a transaction without a statement"
_WITHOUT_EVENT = {
    CPU: "A session waits for nothing, and runs.",
    CPU_WAIT: "A session waits for nothing, and all CPUs that it may use are taken.",
}

_RUNS_OR_WANTS = "A session waits for nothing: it runs, or wants a CPU."  # none is told apart

Key = Mapping[str, str]  # the dimensions of a tally by name
NameOf = Callable[[Key], str | None]


@dataclass(frozen=True, slots=True)
class Window:
    """What was met in the whole seconds of a window; processes are not told apart."""

    record: TrialRecord
    keys: tuple[Key, ...]  # whose blockers have no process: trials do not share any
    counts: npt.NDArray[np.int64]  # (keys, seconds)
    ticks: npt.NDArray[np.int64]  # (seconds,)
    since_begin_s: npt.NDArray[np.float64]  # (seconds,) when each begins


def stage_sessions(
    stage: str, trials: Sequence[TrialRecord], tallies: Mapping[int, Mapping[str, TallySeries]]
) -> StageSessions | None:
    """What the sessions of a stage did.

    Args:
        stage: Its name.
        trials: Those whose numbers may be used.
        tallies: Of each trial, by its number and their names.

    Returns:
        None: sessions were not sampled, or none of them says what it does.
    """
    windows = windows_of(TALLY, stage, trials, tallies)
    if not windows or not _are_told(windows):
        return None
    seconds = sum(one.ticks.size for one in windows)
    told = {name: _told(windows, name_of) for name, name_of in _DIMENSIONS.items()}
    by = {name: shares for name, (shares, _) in told.items()}
    by["relation"] = _by_relation(windows, windows_of(LOCKS, stage, trials, tallies))
    if all(one.name == _NOT_QUEUED for one in by["blocker"]):
        by["blocker"] = ()
    meanings = {**wait_classes(), **_WITHOUT_EVENT}
    if all(one.name != CPU_WAIT for one in by["class"]):
        meanings[CPU] = _RUNS_OR_WANTS
    by["class"] = tuple(replace(one, what=meanings.get(one.name, "")) for one in by["class"])
    (active,) = _shares(windows, lambda key: "active" if class_of(key) else None) or (
        SessionShare("active", 0.0, None, None, 0.0),
    )
    return StageSessions(
        stage=stage,
        seconds=seconds,
        ticks=int(sum(one.ticks.sum() for one in windows)),
        active=_as_time(active, seconds),
        by={name: tuple(_as_time(one, seconds) for one in found) for name, found in by.items()},
        lines=tuple(_line(one) for one in windows),
        rest={name: rest for name, (_, rest) in told.items() if rest},
    )


def round_sessions(trial: TrialRecord, tallies: Mapping[str, TallySeries]) -> RoundSessions | None:
    """What the sessions of one window did; None: see `stage_sessions`.

    Args:
        trial: Whose numbers may be used.
        tallies: Its own, by their names.
    """
    tally = tallies.get(TALLY)
    window = met_in(trial, tally) if tally else None
    if window is None or not _are_told([window]):
        return None
    names = sorted({name for key in window.keys if (name := class_of(key))})
    averages_of = _added(window, names, class_of).sum(axis=1) / window.ticks.sum()
    active = float(averages_of.sum())
    return RoundSessions(
        active,
        {name: float(one) / active for name, one in zip(names, averages_of, strict=True) if active},
    )


def _as_time(share: SessionShare, seconds: int) -> SessionShare:
    return replace(share, database_s=share.average * seconds)


def windows_of(
    name: str,
    stage: str,
    trials: Sequence[TrialRecord],
    tallies: Mapping[int, Mapping[str, TallySeries]],
) -> list[Window]:
    """Those of a stage in which a tally was taken."""
    return [
        window
        for one in trials
        if one.stage == stage and (tally := tallies.get(one.number, {}).get(name))
        if (window := met_in(one, tally)) is not None
    ]


def _are_told(windows: Sequence[Window]) -> bool:
    """Whether sessions say what they do: without track_activities none does."""
    keys = (key for one in windows for key in one.keys)
    return {key["state"] for key in keys if key["role"] in _OF_A_LOAD} != {_DISABLED}


def class_of(key: Key) -> str | None:
    """What an active session of the load does; None: it is none, or idle."""
    if key["role"] not in _OF_A_LOAD:
        return None
    if key["state"] in _IN_TRANSACTION:
        return _CLIENT
    return key["wait_class"] if key["state"] not in ("", "idle", _DISABLED) else None


def _event_of(key: Key) -> str | None:
    if not (found := class_of(key)) or key["wait_event"]:
        return key["wait_event"] if found else None
    return _NO_EVENT if found == _CLIENT else found


def _kind_of(key: Key) -> str | None:
    if not class_of(key):
        return None
    return key["kind"] or (_OF_SEVERAL if key["statement"] else _NOT_OURS)


def _statement_of(key: Key) -> str | None:
    if not class_of(key):
        return None
    return " · ".join(part for part in (key["kind"], key["statement"]) if part) or _NOT_OURS


def _blocker_of(key: Key) -> str | None:
    """What who blocks does."""
    if not (found := class_of(key)):
        return None
    return key["blocker"] or (_NOT_MET if group_of(found) == _LOCK else _NOT_QUEUED)


def _relation_of(key: Key) -> str:
    """What a session in a queue waits for, of the tally of locks."""
    return key["relation"] or _NO_RELATION


def _queued_of(key: Key) -> str | None:
    found = class_of(key)
    return found and (_QUEUED if group_of(found) == _LOCK else _NOT_QUEUED)


def _by_relation(windows: Sequence[Window], queues: Sequence[Window]) -> tuple[SessionShare, ...]:
    """Active sessions by what they queue for; nothing where none was met in a queue.

    Queues are looked at more rarely than sessions: these decide how many are in one, and what of
    it no look at queues has met is not told by relation.
    """
    met = {one.name: one for one in _shares(windows, _queued_of)}
    if (queued := met.get(_QUEUED)) is None:
        return ()
    told = _shares(queues, _relation_of)
    sum_told = sum(one.average for one in told)
    fits = min(1.0, queued.average / sum_told) if sum_told else 0.0
    total = sum(one.average for one in met.values())
    found = [_scaled(one, fits, total) for one in told]
    short = queued.average - sum_told * fits
    if short > _LEAST * queued.average:
        found.append(SessionShare(_WAS_SHORT, short, None, None, short / total))
    free = [met[_NOT_QUEUED]] if _NOT_QUEUED in met else []
    return tuple(sorted([*found, *free], key=lambda one: -one.average))


def _scaled(share: SessionShare, by: float, total: float) -> SessionShare:
    low, high = (None if end is None else end * by for end in (share.low, share.high))
    average = share.average * by
    return replace(share, average=average, low=low, high=high, share=average / total)


def _process_of(key: Key) -> str | None:
    if key["role"] in _OF_A_LOAD or key["wait_class"] == _IDLE:
        return None
    return f"{key['role'].replace('_', ' ')}: {key['wait_event'] or key['wait_class']}"


_DIMENSIONS: Mapping[str, NameOf] = {
    "class": class_of,
    "event": _event_of,
    "kind": _kind_of,
    "statement": _statement_of,
    "blocker": _blocker_of,
    "process": _process_of,
}


def met_in(record: TrialRecord, tally: TallySeries) -> Window | None:
    """The whole seconds of the window that were looked at; None: there are none."""
    if record.result is None:
        return None
    begin, end = record.result.window_ns
    first, behind = -(-begin // NS), end // NS
    inside = (tally.tick_seconds >= first) & (tally.tick_seconds < behind) & (tally.ticks > 0)
    seconds = tally.tick_seconds[inside]
    if not seconds.size:
        return None
    keys, places = _without_processes(tally)
    counts = np.zeros((len(keys), seconds.size), dtype=np.int64)
    at = np.searchsorted(seconds, tally.seconds)
    known = (at < seconds.size) & (seconds[np.minimum(at, seconds.size - 1)] == tally.seconds)
    np.add.at(counts, (places[tally.key[known]], at[known]), tally.counts[known])
    since_begin_s = (seconds * NS - begin).astype(np.float64) / NS
    return Window(record, keys, counts, tally.ticks[inside], since_begin_s)


def _without_processes(tally: TallySeries) -> tuple[tuple[Key, ...], npt.NDArray[np.int64]]:
    """Keys whose blockers are told by what they do, and the place of each old key among them.

    Hundreds of sessions that block each other are thousands of keys, each with a row of the window.
    """
    places: dict[tuple[str, ...], int] = {}
    of_each = [
        places.setdefault(
            tuple(
                _deed(part) if dimension == "blocker" else part
                for dimension, part in zip(tally.dimensions, key, strict=True)
            ),
            len(places),
        )
        for key in tally.keys
    ]
    keys = tuple(dict(zip(tally.dimensions, key, strict=True)) for key in places)
    return keys, np.array(of_each, dtype=np.int64)


def _deed(blocker: str) -> str:
    """What a blocker does, without the number of its process."""
    return " ".join(word for word in blocker.split() if not word.isdecimal())


def _shares(windows: Sequence[Window], name_of: NameOf) -> tuple[SessionShare, ...]:
    """Averages over all windows by a name, the largest first."""
    return _told(windows, name_of)[0]


def _told(
    windows: Sequence[Window], name_of: NameOf
) -> tuple[tuple[SessionShare, ...], Mapping[str, float]]:
    """The same, and the averages of the names that are too many to be told apart."""
    names = sorted({name for one in windows for key in one.keys if (name := name_of(key))})
    if not names:
        return (), {}
    counts = np.concatenate([_added(one, names, name_of) for one in windows], axis=1)
    ticks = np.concatenate([one.ticks for one in windows])
    order = np.argsort(-counts.sum(axis=1), kind="stable")
    kept = [index for index in order if counts[index].any()]
    shown, rest = kept[:NAMED_MAX], kept[NAMED_MAX:]
    rows, labels = [counts[index] for index in shown], [names[index] for index in shown]
    if rest:
        rows.append(counts[rest].sum(axis=0))
        labels.append(REST)
    if not rows:
        return (), {}
    found = averages(np.stack(rows), ticks, np.random.default_rng(_SEED))
    total = found[:, 0].sum()
    shares = tuple(
        SessionShare(name, float(value), _known(low), _known(high), float(value / total))
        for name, (value, low, high) in zip(labels, found, strict=True)
    )
    return shares, {names[index]: float(counts[index].sum() / ticks.sum()) for index in rest}


def _added(window: Window, names: Sequence[str], name_of: NameOf) -> npt.NDArray[np.int64]:
    """Counts by name, shape `(names, seconds)`."""
    places = {name: place for place, name in enumerate(names)}
    added = np.zeros((len(names), window.ticks.size), dtype=np.int64)
    for key, row in zip(window.keys, window.counts, strict=True):
        if name := name_of(key):
            added[places[name]] += row
    return added


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def group_of(wait_class: str) -> str:
    """What charts draw a class of waits as, of `GROUPS`."""
    if wait_class in (CPU, CPU_WAIT):
        return wait_class
    return wait_groups().get(wait_class, OTHER)


def _line(window: Window) -> SessionLine:
    def name_of(key: Key) -> str | None:
        found = class_of(key)
        return group_of(found) if found else None

    first_s = window.since_begin_s[0]
    passed_s = np.rint(window.since_begin_s - first_s).astype(np.int64)
    step = max(1, ceil((int(passed_s[-1]) + 1) / POINTS_MAX))
    # By the seconds that passed: those in which nobody looked are no part of what lies around them.
    parts, begins = np.unique(passed_s // step, return_index=True)
    ends = np.minimum((parts + 1) * step, passed_s[-1] + 1)
    ticks = np.add.reduceat(window.ticks, begins)
    added = _added(window, GROUPS, name_of)
    each = added.sum(axis=0) / window.ticks
    return SessionLine(
        trial=window.record.number,
        round=window.record.round,
        stage=window.record.stage,
        step_s=float(step),
        second=tuple(
            round(float(first_s + (part * step + end) / 2), 3)
            for part, end in zip(parts, ends, strict=True)
        ),
        groups={
            name: _rounded(np.add.reduceat(row, begins) / ticks)
            for name, row in zip(GROUPS, added, strict=True)
            if row.any()
        },
        least=_rounded(np.minimum.reduceat(each, begins)) if step > 1 else (),
        greatest=_rounded(np.maximum.reduceat(each, begins)) if step > 1 else (),
        apart={
            name: extremes(window.since_begin_s + 0.5, row / window.ticks)
            for name, row in zip(GROUPS, added, strict=True)
            if step > 1 and row.any()
        },
    )


def _rounded(sessions: npt.NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(np.round(sessions, 3).tolist())
