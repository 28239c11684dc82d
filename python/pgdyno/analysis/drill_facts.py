"""What a report says of a drill, as records; `analysis.drill` makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.drill import (
    Control,
    Cut,
    Disaster,
    Gain,
    Gains,
    RecordedLoad,
    Recorder,
    Shrunk,
)
from pgdyno.stats.shares import Share

Worst = Literal["whole", "down", "lost", "broken"]
"""Nothing is missing; the server has to be started; commits are missing; the database is, or
contradicts itself."""


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
    stayed_down: int = 0  # servers that somebody had to start again, of those that were struck
    outage_s: float | None = None  # the longest time without a commit; None: no load was struck
    unmet: int = 0  # cuts in which no call met the fault
    repairs: int = 0  # disks that were repaired from a standby before the start
    repaired_blocks: float | None = None  # median of the blocks that were written then
    repair_s: float | None = None  # median
    hung: int = 0  # of those that stayed down: their postmaster ran, and nobody recovered
    recovering: int = 0  # of those that stayed down: somebody still did
    waited_s: float | None = None  # the longest for one of either; None: there was none
    waiting: int = 0  # of those that stayed down: commits waited for a standby that is gone
    emptied: int = 0  # servers whose unlogged tables had lost all rows


@dataclass(frozen=True, slots=True)
class Took:
    """What a disaster took from a stage, in a few words."""

    words: str
    worst: Worst


@dataclass(frozen=True, slots=True)
class MeasuredLoss:
    """What a drill measured of one disaster, as the report of another run shows it."""

    disaster: str
    took: Took
    harmed: Share  # cuts that did harm
    stages: tuple[str, ...]  # of the drill, that were struck
    is_same: bool  # the drill's stage of the same name and settings; else those of the same rung
    drill: str  # its ident
    load: str  # what was driven in it


@dataclass(frozen=True, slots=True)
class Price:
    """What a stage brings beside what it lost."""

    stage: str
    rung: str
    gain: Gain | None  # None: the first stage, or one that the run does not judge
    took: tuple[Took | None, ...]  # by disaster; None: broken off before the first cut of it
    worst: Worst


@dataclass(frozen=True, slots=True)
class DrillFacts:
    """A drill, and what it amounts to."""

    ident: str
    pgdyno: str
    plan: str
    load_s: float
    recorder: Recorder  # that has written down what was asked of the disk
    seed: int
    loads: tuple[RecordedLoad, ...]
    disasters: tuple[Disaster, ...]
    rows: tuple[DisasterFacts, ...]
    cuts: tuple[Cut, ...]
    controls: tuple[Control, ...]
    shrunk: tuple[Shrunk, ...]
    gains: Gains | None
    prices: tuple[Price, ...]  # none without gains
    answers: tuple[str, ...]  # one for each stage
    sentences: tuple[str, ...]  # one for each stage and disaster
    doubts: tuple[str, ...]
    lying: tuple[str, ...] = ()  # stages whose disk does, in every power cut
    gives_up: tuple[tuple[str, str], ...] = ()  # of each stage, why it stands on its rung
