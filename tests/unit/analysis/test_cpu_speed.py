"""CPUs that were faster in some rounds than in others, seen by the driver's own work."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pgdyno.analysis.cpu_speed import uneven
from pgdyno.analysis.facts import Facts, Spread, StageFacts


def stages(
    facts: Facts, cpu_us: tuple[float, ...], sleeps: tuple[float, ...], verdict: str = "undecided"
) -> list[StageFacts]:
    """Two stages, of which the second has a verdict, and both cost the driver so much."""
    first, second, *_ = facts.stages
    assert second.to_first is not None
    told = {"client_cpu_us": Spread.of(cpu_us), "client_sleeps": Spread.of(sleeps)}
    costs = {name: one for name, one in told.items() if one is not None}
    return [
        replace(first, per_transaction=costs),
        replace(second, per_transaction={}, to_first=replace(second.to_first, verdict=verdict)),
    ]


def test_the_same_work_that_took_longer_says_that_cpus_were_slower(facts: Facts) -> None:
    doubt = uneven(stages(facts, (126.0, 92.0, 101.0), (4.9, 5.1, 5.0)))
    assert doubt is not None
    assert doubt.text == (
        "the CPUs were faster in some rounds than in others: the same work of the driver took 92 to"
        " 126 µs of CPU time a transaction"
    )
    assert doubt.stages == (facts.stages[0].name,)
    assert not doubt.grave


@pytest.mark.parametrize(
    ("cpu_us", "sleeps", "verdict"),
    [
        ((92.0, 101.0), (5.0, 5.0), "undecided"),  # a tenth is what trials differ by
        ((92.0, 126.0), (5.0, 7.0), "undecided"),  # it slept more often: that is more work
        ((92.0, 126.0), (5.0, 5.0), "better"),  # decided all the same
        ((0.0, 126.0), (5.0, 5.0), "undecided"),  # a clock that was not read
        ((), (), "undecided"),
    ],
)
def test_what_else_explains_it_or_is_decided_is_not_told(
    cpu_us: tuple[float, ...], sleeps: tuple[float, ...], verdict: str, facts: Facts
) -> None:
    assert uneven(stages(facts, cpu_us, sleeps, verdict)) is None
