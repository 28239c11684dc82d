"""Which path of storage is better: figures of rounds, compared as stages of a plan are.

The rounds of several paths are pairs: what a round did to all of them cancels. Intervals and
verdicts are those of `compare`; each figure is a family of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.floor import PathRound, Probed
from pgdyno.model.floor_figures import PROGRAMS
from pgdyno.stats.compare import CONFIDENCE, MARGIN, compare_plan
from pgdyno.stats.table import table_of
from pgdyno.stats.verdict import Comparison

FIGURES = (
    *(f"commits by {program}" for program in PROGRAMS), "commits by fio under a checkpoint",
    "random reads", "random writes",
)  # fmt: skip
"""Rates a second that paths are compared by, each of one kind of probe on both paths: the figure
that `flush_figure` makes of all kinds may be of another kind on another path."""


def _rates(one: PathRound) -> tuple[float | None, ...]:
    """FIGURES in a round."""
    points = (None if point is None else point.per_s for point in (one.reads, one.writes))
    return one.fdatasync_per_s, one.mixed.alone.per_s, one.mixed.under.per_s, *points


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
    rates = {
        (path, number): _rates(one.of(path))
        for number, one in enumerate(probed.rounds, 1)
        for path in paths
    }
    found = []
    for index, figure in enumerate(FIGURES):
        table = table_of({key: each[index] for key, each in rates.items()}, paths)
        compared = compare_plan(table, margin=margin, confidence=confidence)
        found.append(Compared(figure, compared.against_first))
    return tuple(found)
