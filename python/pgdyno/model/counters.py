"""Counters: what their samples tell of how they grew, which is known here alone.

A counter began anew between two samples where it is smaller than it was (statistics were reset, a
server recovered from a crash, a number of the kernel ran over), or where its view was reset, though
it has outgrown since what it was: see `resets`. How far it had come meanwhile is not known, so that
neither what it grew by is. Between two samples it is taken to have grown evenly, unless these are
too far apart: when it grew within a gap nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from pgdyno.model.resets import counted_on
from pgdyno.model.run import Series
from pgdyno.model.sampler_gaps import APART_S

Floats = npt.NDArray[np.float64]
ROUNDED = 1e-9  # of a value: what sums of fractions lose when they are added in another order
_APART_NS = round(APART_S * 1e9)
# Of a CPU that idles the kernel tells the time since it began to as one or the other, and may take
# that back (proc_stat(5)); nobody resets these. All others of its times only grow.
_MAY_FALL = ("cpu.idle_s", "cpu.iowait_s")


def growth(series: Series, window_ns: tuple[int, int], anew: Collection[str] = ()) -> float | None:
    """Growth of a counter over a window.

    Args:
        series: The counter.
        window_ns: Begin and end.
        anew: Views of its server that were reset in the window.

    Returns:
        None where the samples do not cover the window, an end of it lies in a gap of them, or the
        counter began anew within it.
    """
    ends = levels(series, np.array(window_ns, dtype=np.int64), anew)
    return None if ends is None else float(ends[1] - ends[0])


def levels(
    series: Series, instants_ns: npt.NDArray[np.int64], anew: Collection[str] = ()
) -> Floats | None:
    """A counter at some instants, interpolated between the two samples around each.

    Args:
        series: The counter.
        instants_ns: In the order of time; between the first and the last it must not begin anew.
        anew: Views of its server that were reset meanwhile.

    Returns:
        None where one of them is not known: see `growth`.
    """
    if not instants_ns.size:
        return None
    span = int(instants_ns[0]), int(instants_ns[-1])
    if not counted_on(series.name, anew) or not _covers(series, span) or fell_within(series, span):
        return None
    if _lies_in_gap(series, instants_ns):
        return None
    found = np.interp(instants_ns.astype(np.float64), series.unix_ns, series.values)
    return np.asarray(found, dtype=np.float64)


def ends_in_gap(series: Series, window_ns: tuple[int, int]) -> bool:
    """Whether an end of a window that the samples cover lies between two that are far apart."""
    ends = np.array(window_ns, dtype=np.int64)
    return _covers(series, window_ns) and _lies_in_gap(series, ends)


def _lies_in_gap(series: Series, instants_ns: npt.NDArray[np.int64]) -> bool:
    times = series.unix_ns
    before = times[np.searchsorted(times, instants_ns, side="right") - 1]
    after = times[np.searchsorted(times, instants_ns, side="left")]
    return bool((after - before > _APART_NS).any())


def fell_within(series: Series, window_ns: tuple[int, int]) -> bool:
    """Whether a counter fell between the samples that a window lies between."""
    return begun_anew(series, window_ns) > 0


def begun_anew(series: Series, window_ns: tuple[int, int], resets_ns: Collection[int] = ()) -> int:
    """How often at least a counter began anew between the samples that a window lies between.

    Args:
        series: The counter.
        window_ns: Begin and end.
        resets_ns: When its view was reset, as far as that is known.
    """
    if not _covers(series, window_ns):
        return 0
    start, end = window_ns
    first = int(np.searchsorted(series.unix_ns, start, side="right")) - 1
    last = int(np.searchsorted(series.unix_ns, end, side="left"))
    return int((~counts_on(series, resets_ns)[first:last]).sum())


def known_steps(series: Series, resets_ns: Collection[int] = ()) -> npt.NDArray[np.bool_]:
    """Of each step from a sample to the next, whether it tells how the counter grew meanwhile.

    Args:
        series: The counter.
        resets_ns: When its view was reset, as far as that is known.
    """
    return counts_on(series, resets_ns) & (np.diff(series.unix_ns) <= _APART_NS)


def counts_on(series: Series, resets_ns: Collection[int] = ()) -> npt.NDArray[np.bool_]:
    """Of each step from a sample to the next, whether the counter went on.

    Args:
        series: The counter.
        resets_ns: When its view was reset, as far as that is known.
    """
    times, values = series.unix_ns, series.values
    steps = np.ones(max(0, values.size - 1), dtype=np.bool_)
    if series.name not in _MAY_FALL:
        steps &= np.diff(values) >= -ROUNDED * np.abs(values[:-1])
    for at in resets_ns:
        steps &= (at <= times[:-1]) | (at > times[1:])
    return steps


def _covers(series: Series, window_ns: tuple[int, int]) -> bool:
    times = series.unix_ns
    return times.size >= 2 and bool(times[0] <= window_ns[0] and times[-1] >= window_ns[1])
