"""Results beside each other: what differs between two, and a ratio that somebody asked for.

A ratio has no interval and no verdict: what is not told of tools and servers may be all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.errors import PlanError
from pgdyno.model.imported import COMPARABLE, CONDITIONS, Condition, Imported

_NOT_OF_THE_LOAD = ("run", "repeats")


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that two results do not share."""

    what: str
    values: tuple[str, str]


@dataclass(frozen=True, slots=True)
class Beside:
    """A figure of one result against that of another, with all that differs."""

    metric: str
    meaning: str
    values: tuple[float, float]
    ratio: float  # of the second to the first
    how: tuple[str, str]
    differences: tuple[Difference, ...]
    unknown: tuple[str, ...]  # of one or both

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader has to be told with the ratio."""
        said = [f"{one.what}: {one.values[0]} and {one.values[1]}" for one in self.differences]
        return (
            "It is a ratio of two figures, without an interval and without a verdict.",
            f"What differs: {'; '.join(said)}." if said else "Nothing that is told differs.",
            f"Not told of both: {', '.join(self.unknown)}.",
        )


def beside(one: Imported, other: Imported, metric: str) -> Beside:
    """The ratio of a comparable figure.

    Raises:
        PlanError: The metric is unknown, or one result has no such figure.
    """
    if metric not in COMPARABLE:
        raise PlanError(
            f"the metric is {metric!r}, allowed are {', '.join(COMPARABLE)}",
            "tpmC, TPM and alike mean something else in each tool.",
        )
    values = tuple(_figure(result, metric) for result in (one, other))
    first, second = values
    if first[0] <= 0:
        raise PlanError(f"{metric} of {one.source.file} is 0", "Nothing can be set beside it.")
    return Beside(
        metric, COMPARABLE[metric], (first[0], second[0]), second[0] / first[0],
        (first[1], second[1]), differences(one, other), _unknown(one, other),
    )  # fmt: skip


def differences(one: Imported, other: Imported) -> tuple[Difference, ...]:
    """What is told of both and differs, or of one alone."""
    pairs: list[tuple[str, Condition | None, Condition | None]] = [
        ("tool", one.tool, other.tool), ("version", one.version, other.version),
        ("output", one.form, other.form),
    ]  # fmt: skip
    pairs += [
        (name, one.conditions.get(key), other.conditions.get(key))
        for key, name in CONDITIONS.items()
        if key not in _NOT_OF_THE_LOAD
    ]
    return tuple(
        Difference(what, (_shown(mine), _shown(its))) for what, mine, its in pairs if mine != its
    )


def _figure(one: Imported, metric: str) -> tuple[float, str]:
    for figure in one.comparable:
        if figure.metric == metric:
            return figure.value, figure.how
    has = ", ".join(figure.metric for figure in one.comparable) or "none"
    where = one.source.place
    raise PlanError(f"{one.tool} in {where} has no {metric}; its comparable figures: {has}")


def _unknown(one: Imported, other: Imported) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one.unknown, *other.unknown)))


def _shown(value: object) -> str:
    if value is None:
        return "not told"
    return f"{value:g}" if isinstance(value, float) else str(value)
