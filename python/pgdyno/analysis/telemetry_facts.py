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
    lost_share: float | None  # of the looks that were due; None: none was


@dataclass(frozen=True, slots=True)
class Looks:
    """How often was looked at something in the trials of a stage."""

    stage: str
    what: str  # a tally by its name, or all series
    samplers: int
    due_per_s: float
    reached_per_s: float
    lost_share: float | None  # of those that were due; None: none was


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
    looks: tuple[Looks, ...]
    lacking: tuple[Lacking, ...]
