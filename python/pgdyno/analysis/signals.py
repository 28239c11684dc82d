"""Lines of host and server over time, from their series, for the middle trial of each stage.

The trial of a stage whose throughput is its median is shown: what it shows happened, while a mean
of rounds never did. Long lines keep the least and the greatest value of each of their parts, so
that a stall of a second is seen in an hour. A signal that never moved is left out, and so are
devices beyond the busiest ones, of which the table of resources tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.extremes import Floats, shortened
from pgdyno.analysis.resource_measures import DEVICE
from pgdyno.analysis.resources import members, shown
from pgdyno.analysis.signal_facts import Signal, SignalLine, SignalUnit
from pgdyno.analysis.snapshots import SnapshotsByTrial
from pgdyno.model.counters import known_steps
from pgdyno.model.host_time import HOST_IDLE_COLUMNS, IDLE_COLUMNS, is_of_one_cpu
from pgdyno.model.resets import resets_ns
from pgdyno.model.run import Series, SnapshotRows, TrialRecord

NS = 1e9
Points = tuple[Floats, Floats]  # s since the window began; values
SeriesByName = Mapping[str, Series]


@dataclass(frozen=True, slots=True)
class _Source:
    """How a signal is made of series."""

    name: str
    unit: SignalUnit
    points: Callable[[_Sampled], Points | None]


@dataclass(frozen=True, slots=True)
class _Sampled:
    """What was sampled of a trial."""

    begin_ns: int  # of its window
    series: SeriesByName
    snapshots: Sequence[SnapshotRows]

    def known_steps(self, names: Sequence[str]) -> npt.NDArray[np.bool_]:
        """Of each step between samples, whether it tells how all these counters grew."""
        each = [known_steps(self.series[one], resets_ns(one, self.snapshots)) for one in names]
        return np.asarray(np.all(each, axis=0), dtype=np.bool_)


def _rate(*names: str, over: Sequence[str] = ()) -> Callable[[_Sampled], Points | None]:
    """Growth of counters, by seconds or by the growth of others.

    There is no point where these stand still, and none where a counter began anew or was not looked
    at for a while.
    """

    def points(sampled: _Sampled) -> Points | None:
        series = sampled.series
        above, below = _added(series, names), _added(series, over) if over else None
        if above is None or (over and below is None) or above[0].size < 2:
            return None
        at = (above[0] - sampled.begin_ns) / NS
        grown = np.diff(above[1])
        by = np.diff(at) if below is None else np.diff(below[1])
        known = (by > 0) & (grown >= 0) & sampled.known_steps([*names, *over])
        return ((at[1:] + at[:-1]) / 2)[known], grown[known] / by[known]

    return points


def _level(name: str) -> Callable[[_Sampled], Points | None]:
    """A gauge as it was."""

    def points(sampled: _Sampled) -> Points | None:
        found = _added(sampled.series, (name,))
        return None if found is None else ((found[0] - sampled.begin_ns) / NS, found[1])

    return points


def _busy(sampled: _Sampled) -> Points | None:
    """Of the states' sum or, where that is less, of the time that passed on all CPUs."""
    idle = _added(sampled.series, IDLE_COLUMNS)
    counted = _added(sampled.series, HOST_IDLE_COLUMNS)
    if idle is None or counted is None or counted[0].size < 2:
        return None
    at_ns, grown = idle[0], np.diff(idle[1])
    cpus = _cpus(sampled.series, at_ns)
    passed = np.maximum(np.diff(counted[1]), np.diff(at_ns) / NS * np.minimum(cpus[1:], cpus[:-1]))
    known = (passed > 0) & (grown >= 0) & sampled.known_steps(HOST_IDLE_COLUMNS)
    at = (at_ns - sampled.begin_ns) / NS
    return ((at[1:] + at[:-1]) / 2)[known], 1 - grown[known] / passed[known]


def _cpus(series: SeriesByName, at_ns: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """How many were on at these moments, as far as they were sampled one by one."""
    cpus = np.zeros(at_ns.size, dtype=np.int64)
    for name in filter(is_of_one_cpu, series):
        cpus += np.isin(at_ns, series[name].unix_ns)
    return cpus


def _added(
    series: SeriesByName, names: Sequence[str]
) -> tuple[npt.NDArray[np.int64], Floats] | None:
    """The sum of series that were sampled together; None: one of them was not."""
    found = [series[name] for name in names if name in series]
    if len(found) < len(names) or len({one.values.size for one in found}) != 1:
        return None
    return found[0].unix_ns, np.sum([one.values for one in found], axis=0, dtype=np.float64)


_SOURCES = (
    _Source("CPUs busy", "share", _busy),
    _Source("a task waits for a CPU", "share", _rate("psi.cpu.some_s")),
    _Source("a task waits for memory", "share", _rate("psi.memory.some_s")),
    _Source("a task waits for I/O", "share", _rate("psi.io.some_s")),
    _Source(
        "CPUs on which the control group holds the server back", "1", _rate("cgroup.throttled_s")
    ),
    _Source("pages swapped", "1/s", _rate("vm.swap_in_pages", "vm.swap_out_pages")),
    _Source("WAL written", "B/s", _rate("wal.bytes")),
    _Source("full page images", "1/s", _rate("wal.fpi")),
    _Source("buffers written by checkpoints", "1/s", _rate("checkpoints.buffers")),
    _Source(
        "buffers written by restartpoints of the replica", "1/s", _rate("restartpoints.buffers")
    ),
    _Source("temporary files", "B/s", _rate("database.temp_bytes")),
    _Source("oldest transaction", "s", _level("transactions.oldest_s")),
    _Source("transactions that vacuum must keep", "1", _level("transactions.oldest_xmin_age")),
    _Source("WAL kept by replication slots", "B", _level("slots.retained_bytes")),
    _Source("standbys behind", "B", _level("replication.behind_bytes")),
)
_ALWAYS_MOVES = {"oldest transaction": 1.0, "transactions that vacuum must keep": 10_000.0}
"""What is shown only from here on: it moves in every run, and means nothing below."""


def _device_sources(name: str) -> Iterator[_Source]:
    at = f"{DEVICE}{name}."
    yield _Source(
        f"{name}: time of a read or write",
        "s",
        _rate(f"{at}read_s", f"{at}write_s", over=[f"{at}reads", f"{at}writes"]),
    )
    yield _Source(f"{name}: time of a flush", "s", _rate(f"{at}flush_s", over=[f"{at}flushes"]))
    yield _Source(f"{name}: requests under way", "1", _rate(f"{at}weighted_s"))
    yield _Source(f"{name}: written", "B/s", _rate(f"{at}write_bytes"))
    yield _Source(f"{name}: read", "B/s", _rate(f"{at}read_bytes"))


def signals(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: Mapping[int, SeriesByName],
    snapshots: SnapshotsByTrial,
) -> tuple[Signal, ...]:
    """All signals that moved.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
        snapshots: Likewise; they tell of resets.
    """
    chosen = [one for stage in stages if (one := middle(trials, stage)) is not None]
    devices = members((name for one in chosen for name in series.get(one.number, {})), DEVICE)
    busy = shown(chosen, devices)
    sources = [*_SOURCES, *(one for device in busy for one in _device_sources(device))]
    sampled = [
        (one, _Sampled(one.result.window_ns[0], series.get(one.number, {}),
                       snapshots.get(one.number, ())))
        for one in chosen if one.result is not None
    ]  # fmt: skip
    found = (_signal(source, sampled) for source in sources)
    return tuple(one for one in found if one is not None)


def middle(trials: Sequence[TrialRecord], stage: str) -> TrialRecord | None:
    """The trial of a stage whose throughput is the median of its rounds; None: none has one."""
    measured = sorted(
        (one for one in trials if one.stage == stage and one.result is not None),
        key=lambda one: one.result.throughput if one.result else 0.0,
    )
    return measured[len(measured) // 2] if measured else None


def _signal(source: _Source, chosen: Sequence[tuple[TrialRecord, _Sampled]]) -> Signal | None:
    lines = [line for one in chosen if (line := _line(source, *one)) is not None]
    values = [value for line in lines for value in line.values]
    least = _ALWAYS_MOVES.get(source.name, 0.0)
    if not values or max(values) <= least or max(values) == min(values):
        return None
    return Signal(source.name, source.unit, tuple(lines))


def _line(source: _Source, record: TrialRecord, sampled: _Sampled) -> SignalLine | None:
    assert record.result is not None
    begin_ns, end_ns = record.result.window_ns
    if (points := source.points(sampled)) is None:
        return None
    at, values = points
    inside = at <= (end_ns - begin_ns) / NS
    if not inside.any():
        return None
    at, values = shortened(at[inside], values[inside])
    return SignalLine(
        record.number,
        record.stage,
        tuple(round(float(one), 3) for one in at),
        tuple(float(f"{one:.6g}") for one in values),
    )
