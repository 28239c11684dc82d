"""A limit for CI: which stages of a comparison lie below a ratio, shown by their whole interval.

A stage that truly stands at the limit, or above, is failed in 2.5% of cases at most: its interval
of 95% lies below the ratio too far in half of those 5% that miss it. Each stage has that rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from pgdyno.analysis.beside_facts import Against, Compared, Gate, Row
from pgdyno.model.errors import PlanError
from pgdyno.stats.between_runs import falls_below, least_found
from pgdyno.stats.verdict import Verdict


def require_limit(limit: float) -> None:
    """Refuse what is no limit.

    Raises:
        PlanError: It is not above 0 and at most 1.
    """
    if not 0 < limit <= 1:
        raise PlanError(f"--fail-below is {limit:g}, above 0 and at most 1 is allowed")


def gates(found: Compared, limit: float) -> tuple[Gate, ...]:
    """Every comparison of stages against a limit.

    Args:
        found: The comparisons.
        limit: A ratio that `require_limit` has let pass, e.g. 0.95.

    Raises:
        PlanError: Nothing is compared, or a comparison has no interval or cannot be judged: nothing
            is passed then.
    """
    held = tuple(_held(found, limit))
    if not held:
        raise PlanError(
            "--fail-below is given, and no stage is compared with another one",
            "Results of other tools have no interval, and so no limit.",
        )
    return held


def _held(found: Compared, limit: float) -> Iterator[Gate]:
    for row in found.rows:
        for one in row.against:
            yield _gate(row, one, limit)


def _gate(row: Row, one: Against, limit: float) -> Gate:
    comparison, side = one.comparison, row.sides[one.place]
    if comparison.low is None or comparison.high is None:
        raise PlanError(f"{side.label}: {comparison.reason}", one.hint)
    if comparison.verdict == Verdict.NOT_JUDGED.value:
        raise PlanError(f"{side.label} is not judged: {comparison.reason}")
    base = row.sides[0]
    return Gate(
        stage=side.stage, run=side.run, limit=limit,
        against=base.run if base.run != side.run else base.stage,
        ratio=comparison.ratio or 0.0, low=comparison.low, high=comparison.high,
        fails=falls_below(comparison.low, comparison.high, limit),
        least_found=(
            None if one.how == "paired" or row.noise is None
            else least_found(limit, row.noise, comparison.confidence)
        ),
    )  # fmt: skip
