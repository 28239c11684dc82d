"""Whether the CPUs themselves were as fast in one round as in another, by the driver's own work.

A transaction is the same work for the driver in each round of a stage. Where it takes more CPU time
while the driver sleeps as often, a CPU did less in a second: neighbours on its core or in its
caches, or its clock. No counter of a guest tells that, and the server slows down with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.analysis.answer_facts import Doubt
from pgdyno.analysis.facts import StageFacts
from pgdyno.model.units import digits_text

_UNEVEN = 1.2  # of the driver's CPU time a transaction, the most over the least of a stage's rounds
_AS_OFTEN = 1.1  # the same of how often it sleeps: with more it had more work
_SIMPLY = "the machine's processors were now faster, now slower, as others may have used them"


def uneven(stages: Sequence[StageFacts]) -> Doubt | None:
    """The stages whose rounds had CPUs of different speed, which is why a verdict is not there yet.

    None: it is of none that is seen, or all is decided all the same.
    """
    if not any(one.to_first and one.to_first.verdict == "undecided" for one in stages):
        return None
    found = {one.name: range_ for one in stages if (range_ := _range(one))}
    if not found:
        return None
    low, high = max(found.values(), key=lambda pair: pair[1] / pair[0])
    return Doubt(
        "the CPUs were faster in some rounds than in others: the same work of the driver took"
        f" {digits_text(low)} to {digits_text(high)} µs of CPU time a transaction",
        grave=False, stages=tuple(found), all_stages=len(found) == len(stages) > 1, simply=_SIMPLY,
    )  # fmt: skip


def _range(stage: StageFacts) -> tuple[float, float] | None:
    """The least and the most CPU time of the driver, where only its speed explains them."""
    spent = stage.per_transaction.get("client_cpu_us")
    sleeps = stage.per_transaction.get("client_sleeps")
    if spent is None or sleeps is None or min(spent.rounds) <= 0 or min(sleeps.rounds) <= 0:
        return None
    low, high = min(spent.rounds), max(spent.rounds)
    alike = max(sleeps.rounds) / min(sleeps.rounds) <= _AS_OFTEN
    return (low, high) if alike and high / low >= _UNEVEN else None
