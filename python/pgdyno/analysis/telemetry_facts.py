"""What was looked at while the load ran, what that cost, and what could not be seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TelemetryCost:
    """What looking took in the trials of a stage."""

    stage: str
    set: str  # none, default or full
    cpu_share: float  # of one processor, while it was looked; mean of the trials
    looks_per_s: float  # takes of all samplers together
    lost_share: float  # of the looks that were due: they came too late, and were left out


@dataclass(frozen=True, slots=True)
class Lacking:
    """Something that could not be seen, or no longer."""

    name: str
    reason: str  # a fact, in lower case and without full stop
    remedy: str  # what would add it, e.g. a GRANT; empty: nothing that is known
    stages: tuple[str, ...]  # where


@dataclass(frozen=True, slots=True)
class TelemetryFacts:
    """Of all stages."""

    costs: tuple[TelemetryCost, ...]
    lacking: tuple[Lacking, ...]
