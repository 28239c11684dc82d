"""What was sampled of one window, and the measures that are made of it.

A measure whose series are missing is not known; it is never zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.resource_facts import Aspect, Unit
from pgdyno.model.run import Series, SnapshotRows, TallySeries, TrialRecord, TrialResult

NS = 1e9
Floats = npt.NDArray[np.float64]
SeriesByTrial = Mapping[int, Mapping[str, Series]]
TalliesByTrial = Mapping[int, Mapping[str, TallySeries]]
_NOTHING: Mapping[int, Any] = {}


@dataclass(frozen=True, slots=True)
class Seen:
    """What was sampled of a window: counters by what they grew, gauges as they were."""

    result: TrialResult
    series: Mapping[str, Series]
    tallies: Mapping[str, TallySeries] = field(default_factory=dict)
    snapshots: Sequence[SnapshotRows] = ()

    @property
    def window_s(self) -> float:
        """How long it was."""
        begin, end = self.result.window_ns
        return (end - begin) / NS

    def grown(self, *names: str) -> float | None:
        """By how much counters grew in the window, together; None: of one it is not known."""
        if not all(name in self.result.deltas for name in names):
            return None
        return sum(self.result.deltas[name] for name in names)

    def per_s(self, *names: str) -> float | None:
        """The same, by seconds."""
        return over(self.grown(*names), self.window_s)

    def mean(self, name: str) -> float | None:
        """Of a gauge in the window."""
        inside = self.inside(name)
        return float(inside.mean()) if inside.size else None

    def inside(self, name: str) -> Floats:
        """The samples of a gauge in the window; none where it was not sampled."""
        if (one := self.series.get(name)) is None:
            return np.empty(0)
        begin, end = self.result.window_ns
        return one.values[(one.unix_ns >= begin) & (one.unix_ns <= end)]


def seen_by_stage(
    stages: Sequence[str],
    trials: Sequence[TrialRecord],
    series: SeriesByTrial = _NOTHING,
    tallies: TalliesByTrial = _NOTHING,
    snapshots: Mapping[int, Sequence[SnapshotRows]] = _NOTHING,
) -> dict[str, list[Seen]]:
    """The windows of each stage, in the order of their trials.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
        series: Of each trial, by its number and their names.
        tallies: Likewise.
        snapshots: Likewise.
    """
    return {
        stage: [
            Seen(one.result, series.get(one.number, {}), tallies.get(one.number, {}),
                 snapshots.get(one.number, ()))
            for one in trials
            if one.stage == stage and one.result is not None
        ]
        for stage in stages
    }  # fmt: skip


Measured = Callable[[Seen], float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """One measure of a resource."""

    resource: str
    aspect: Aspect
    what: str
    measured: Measured
    unit: Unit = "share"
    further: bool = False  # told beside those that tell most


def over(part: float | None, whole: float | None) -> float | None:
    """A part of a whole, where both are known and there is a whole."""
    return None if part is None or not whole else part / whole


def rate(*names: str) -> Measured:
    """How fast counters grew, together."""
    return lambda seen: seen.per_s(*names)


def level(name: str) -> Measured:
    """A gauge's mean."""
    return lambda seen: seen.mean(name)


def used(free: str, total: str) -> Measured:
    """The share of a whole that is not free, by two gauges."""

    def measured(seen: Seen) -> float | None:
        left = over(seen.mean(free), seen.mean(total))
        return None if left is None else 1 - left

    return measured


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of those that are known; None: none is."""
    known = [one for one in values if one is not None]
    return fmean(known) if known else None
