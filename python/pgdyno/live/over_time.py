"""Figures of the trial that runs, second by second; averages of longer ones keep their ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

POINTS_MAX = 240


_ZERO = (0.0, 0.0)


@dataclass(slots=True)
class _Step:
    """What was told in some seconds."""

    weight: float = 0.0
    sums: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    ends: dict[str, tuple[float, float]] = field(default_factory=dict)  # of what was told at once

    def add(self, sums: Mapping[str, float], weight: float) -> None:
        told = {name: (value / weight, value / weight) for name, value in sums.items()}
        self._take(sums, weight, told)

    def _take(
        self, sums: Mapping[str, float], weight: float, ends: Mapping[str, tuple[float, float]]
    ) -> None:
        if self.weight and weight:  # who was not told where others were was zero
            names = {*self.ends, *ends}
            both = ((self.ends.get(one, _ZERO), ends.get(one, _ZERO)) for one in names)
            self.ends = {
                name: (min(one[0], other[0]), max(one[1], other[1]))
                for name, (one, other) in zip(names, both, strict=True)
            }
        elif weight:
            self.ends = dict(ends)
        self.weight += weight
        for name, value in sums.items():
            self.sums[name] += value

    def with_(self, other: _Step) -> _Step:
        found = _Step()
        for one in (self, other):
            found._take(one.sums, one.weight, one.ends)
        return found


class OverTime:
    """Averages by name, in steps that double when there are too many.

    A name that was not told where others were is zero there; where nothing was told, nothing is
    known.
    """

    def __init__(self) -> None:
        self.step_s = 1
        self._steps: list[_Step] = []

    def take(self, at_s: float, sums: Mapping[str, float], weight: float = 1.0) -> None:
        """Add what was told.

        Args:
            at_s: When, since the begin.
            sums: By name; over the weight they are averages.
            weight: What they count for, e.g. how often it was looked; above 0.
        """
        while int(at_s) // self.step_s >= POINTS_MAX:
            pairs = zip(self._steps[::2], [*self._steps[1::2], _Step()], strict=False)
            self._steps = [one.with_(next_one) for one, next_one in pairs]
            self.step_s *= 2
        place = int(at_s) // self.step_s
        self._steps += [_Step() for _ in range(place + 1 - len(self._steps))]
        self._steps[place].add(sums, weight)

    @property
    def names(self) -> set[str]:
        """What was told of, and was not zero all the time."""
        return {name for step in self._steps for name, value in step.sums.items() if value}

    def values(self, name: str) -> list[float | None]:
        """Its average in each step since the begin; None where nothing was told."""
        return [
            round(step.sums.get(name, 0.0) / step.weight, 3) if step.weight else None
            for step in self._steps
        ]

    def ends(self, name: str) -> list[list[JsonValue] | None]:
        """The least and the greatest that was told in each step; nothing where none is longer."""
        if self.step_s == 1:
            return []
        return [_rounded(step.ends.get(name, _ZERO)) if step.weight else None
                for step in self._steps]  # fmt: skip


def _rounded(ends: tuple[float, float]) -> list[JsonValue]:
    return [round(ends[0], 3), round(ends[1], 3)]
