"""Trials of rounds that were measured again, as the report tells them."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.run import TrialRecord


@dataclass(frozen=True, slots=True)
class ReplacedFacts:
    """A trial of a round that was measured again: kept, not used, and evidence if it failed."""

    number: int
    replaced_by: int
    round: int
    stage: str
    state: str
    reason: str | None
    throughput: float | None


def replaced_facts(record: TrialRecord) -> ReplacedFacts:
    """What is said of a trial whose round was measured again."""
    assert record.replaced_by is not None
    return ReplacedFacts(
        record.number, record.replaced_by, record.round, record.stage, record.state.value,
        record.reason, record.result.throughput if record.result else None,
    )  # fmt: skip
