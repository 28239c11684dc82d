"""How many times as fast one load is as another, or how much there is, from windows of rounds.

What a round did to both cancels, as between stages. Of a single window nothing is known: the next
one may tell another rate.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from pgdyno.model.floor import Floor, PathRound, Pattern, Probed, Wish
from pgdyno.model.floor_figures import Level, Span, Times
from pgdyno.stats.compare import CONFIDENCE
from pgdyno.stats.flush_figure import middle, rest_rounds, span_of
from pgdyno.stats.interval import estimate


def times(many: Sequence[float], one: Sequence[float]) -> Times:
    """Compare rates, a pair for each round.

    Args:
        many: Rates a second, above 0; at least one.
        one: Those that they are compared with, of the same rounds.
    """
    if len(many) < 2:
        return Times(span_of(one), span_of(many), middle(many) / middle(one), None, None)
    logs = np.log(np.array(many) / np.array(one))
    fitted = estimate(logs[np.newaxis], CONFIDENCE)
    centre, low, high = (
        float(np.exp(side[0])) for side in (fitted.centre, fitted.low, fitted.high)
    )
    return Times(span_of(one), span_of(many), centre, low, high)


def level_span(values: Sequence[float]) -> Span:
    """Of at least one value, any of which may be 0; its middle is the plain median."""
    return Span(median(values), min(values), max(values), len(values))


def share_level(values: Sequence[float]) -> Level:
    """How large a share is: one value for each round, at least one; any may be 0."""
    rounds = level_span(values)
    if rounds.n < 2:
        return Level(rounds, None, None)
    fitted = estimate(np.array(values)[np.newaxis], CONFIDENCE)
    low, high = float(fitted.low[0]), float(fitted.high[0])
    return Level(rounds, max(0.0, low), min(1.0, high))  # a share is never beyond


def time_level(values: Sequence[float]) -> Level:
    """How long something takes: the same, all above 0, whose logarithms spread alike."""
    found = times(values, [1.0] * len(values))
    return Level(level_span(values), found.low, found.high)


def many_times(rounds: Sequence[PathRound], wish: Wish, pattern: Pattern) -> Times | None:
    """The heaviest load against one request, or one process, at a time; None: not in rounds."""
    most, one = wish.heaviest(pattern), wish.one_each(pattern)
    pairs = [(upper, lower) for each in rounds
             if (upper := each.at(most)) and (lower := each.at(one))]  # fmt: skip
    if most == one or not pairs:
        return None
    return times([upper.per_s for upper, _ in pairs], [lower.per_s for _, lower in pairs])


def rest_times(floor: Floor, probed: Probed) -> tuple[Times, ...]:
    """How many times as long a flush takes after each of PAUSES_US, by rounds; (): not known."""
    return tuple(times(factors, [1.0] * len(factors)) for factors in rest_rounds(floor, probed))
