"""What a report says of a replica that answered reads."""

from __future__ import annotations

from dataclasses import dataclass

LABEL = "reads of a replica may be stale"
"""Stands beside the figures of every run in which one answered."""


@dataclass(frozen=True, slots=True)
class Levels:
    """A level as it was sampled in the windows of a stage, all finished rounds together."""

    p50: float
    p99: float
    most: float
    exact_below: float | None = None  # from which on these are lower bounds; None: all are exact


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A stage whose Order-Status and Stock-Level a replica answered."""

    stage: str
    connections: int  # with the replica
    rounds: int
    answered_per_s: float  # transactions that it answered, median of rounds
    share: float  # of all transactions, median of rounds
    samples: int  # behind the levels
    lag_s: Levels | None  # how long ago the primary was where it was; None: not sampled
    behind_bytes: Levels | None  # of WAL
