"""Which path of storage is better: figures of rounds, compared as stages of a plan are.

The rounds of several paths are pairs: what a round did to all of them cancels. Intervals and
verdicts are those of `compare`; each figure is a family of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pgdyno.model.floor import GridPoint, PathRound, Probed
from pgdyno.stats.compare import CONFIDENCE, MARGIN, compare_plan
from pgdyno.stats.flush_figure import fastest_ns
from pgdyno.stats.table import table_of
from pgdyno.stats.verdict import Comparison

Figure = Callable[[PathRound], float | None]


def _per_s(point: GridPoint | None) -> float | None:
    return None if point is None else point.per_s


FIGURES: dict[str, Figure] = {
    "commits of one client": lambda one: 1e9 / fastest_ns(one),
    "commits under a checkpoint": lambda one: one.mixed.under.per_s,
    "random reads": lambda one: _per_s(one.reads),
    "random writes": lambda one: _per_s(one.writes),
}
"""Rates a second that paths are compared by; the first one as `flush_figure` reconciles it."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One figure of all paths but the first, each against the first."""

    figure: str
    paths: tuple[Comparison, ...]  # its stages are paths


def compare_paths(
    probed: Probed, *, margin: float = MARGIN, confidence: float = CONFIDENCE
) -> tuple[Compared, ...]:
    """Compare every path with the first one.

    Args:
        probed: What was measured.
        margin: See `compare.compare_plan`, as what follows.
        confidence: Of each interval.

    Returns:
        A comparison for each figure; none where there are no rounds, or no second path.
    """
    paths = tuple(floor.path for floor in probed.floors)
    if len(paths) < 2 or not probed.rounds:
        return ()
    found = []
    for figure, value in FIGURES.items():
        rates = {
            (path, number): value(one.of(path))
            for number, one in enumerate(probed.rounds, 1)
            for path in paths
        }
        compared = compare_plan(table_of(rates, paths), margin=margin, confidence=confidence)
        found.append(Compared(figure, compared.against_first))
    return tuple(found)
