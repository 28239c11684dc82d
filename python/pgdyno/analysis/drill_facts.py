"""What a report says of a drill, as records; `analysis.drill` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.drill import Control, Cut, Disaster, Gain, Gains, RecordedLoad, Shrunk
from pgdyno.stats.shares import Share

Worst = Literal["whole", "lost", "broken"]
"""Nothing is missing; commits are; the database is, or contradicts itself."""


@dataclass(frozen=True, slots=True)
class DisasterFacts:
    """What one disaster did to one stage."""

    stage: str
    rung: str
    disaster: str
    cuts: int
    dead: int  # clusters that did not come back
    damaged: int  # that came back and contradict themselves
    lost: int  # that came back whole, without something that was acknowledged
    harmed: Share  # all of these
    commits_lost: int  # the most of one cut
    lost_s: float  # the longest: since the first lost commit was acknowledged
    acknowledged: int  # commits that were checked, over all cuts
    recovery_s: float | None  # median of those that came back; None: none did
    open_cuts: int  # cuts in which something was left to chance
    example: str | None  # what was said of the first one that was harmed


@dataclass(frozen=True, slots=True)
class Took:
    """What a disaster took from a stage, in a few words."""

    words: str
    worst: Worst


@dataclass(frozen=True, slots=True)
class Price:
    """What a stage brings beside what it lost."""

    stage: str
    rung: str
    gain: Gain | None  # None: the first stage, or one that the run does not judge
    took: tuple[Took, ...]  # by disaster
    worst: Worst


@dataclass(frozen=True, slots=True)
class DrillFacts:
    """A drill, and what it amounts to."""

    ident: str
    pgdyno: str
    plan: str
    load_s: float
    seed: int
    loads: tuple[RecordedLoad, ...]
    disasters: tuple[Disaster, ...]
    rows: tuple[DisasterFacts, ...]
    cuts: tuple[Cut, ...]
    controls: tuple[Control, ...]
    shrunk: tuple[Shrunk, ...]
    gains: Gains | None
    prices: tuple[Price, ...]  # none without gains
    sentences: tuple[str, ...]
    doubts: tuple[str, ...]
