"""Several clients of one run: which results are simultaneous, and what they add up to.

What tools told is never changed; a sum is the importer's, and says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.imported import Imported

SIMULTANEOUS = 0.95  # of the time of both


@dataclass(frozen=True, slots=True)
class Together:
    """Results of one tool that ran at the same time."""

    tool: str
    places: tuple[int, ...]  # of the results, from 0
    sums: dict[str, float]  # told and comparable figures that add up: rates, counts
    said: str


def overlap(one: Imported, other: Imported) -> float:
    """The share of the time of both that they have in common; 0 where a time is unknown."""
    if one.span is None or other.span is None:
        return 0.0
    common = min(one.span.end_s, other.span.end_s) - max(one.span.begin_s, other.span.begin_s)
    every = max(one.span.end_s, other.span.end_s) - min(one.span.begin_s, other.span.begin_s)
    return max(common, 0.0) / every if every > 0 else 0.0


def simultaneous(results: Sequence[Imported]) -> tuple[Together, ...]:
    """Groups of results whose times are the same."""
    groups: list[list[int]] = []
    for place, one in enumerate(results):
        fits = (group for group in groups if _fits(one, [results[other] for other in group]))
        group = next(fits, None)
        if group is None:
            groups.append([place])
        else:
            group.append(place)
    return tuple(_sum(group, results) for group in groups if len(group) > 1)


def _fits(one: Imported, group: Sequence[Imported]) -> bool:
    return all(
        other.tool == one.tool
        and other.form == one.form
        and other.source != one.source
        and overlap(one, other) >= SIMULTANEOUS
        for other in group
    )


def _sum(places: Sequence[int], results: Sequence[Imported]) -> Together:
    members = [results[place] for place in places]
    sums: dict[str, float] = {}
    for metric in {
        told.metric
        for told in members[0].told
        if told.of is None and told.unit in ("1/min", "1/s", "transactions")
    }:
        values = [one.said(metric) for one in members]
        if all(value is not None for value in values):
            sums[metric] = sum(value for value in values if value is not None)
    for metric in [one.metric for one in members[0].comparable]:
        values = [one.value(metric) for one in members]
        if all(value is not None for value in values):
            sums[metric] = sum(value for value in values if value is not None)
    said = "added by the importer: these results ran at the same time"
    return Together(members[0].tool, tuple(places), dict(sorted(sums.items())), said)
