"""How far an experiment is: what its listeners are told; loads and windows in the core's words."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pgdyno.model.knee import Point
from pgdyno.model.plan import Plan
from pgdyno.model.run import TrialRecord

__all__ = [
    "DriveProgress",
    "Event",
    "ExportProgress",
    "LoadProgress",
    "LookTaken",
    "Noted",
    "PgbenchProgress",
    "PhaseBegun",
    "PointMeasured",
    "RunBegun",
    "StepBegun",
    "TrialEnded",
]


@dataclass(frozen=True, slots=True)
class DriveProgress:
    """How far a driven window is; pgbench tells the rates of all kinds together, as `all`."""

    phase: str  # connect, ready (of several hosts), warmup, window, drain, done
    phase_left_s: float
    elapsed_s: float = 0.0  # since the start
    committed: dict[str, int] = field(default_factory=dict)  # by kind, since the start
    last_second: dict[str, int] = field(default_factory=dict)  # of these, in the last full second
    rolled_back: int = 0
    failed: int = 0
    retries: int = 0
    reconnects: int = 0
    connected: int = 0  # connections at this moment


@dataclass(frozen=True, slots=True)
class PgbenchProgress(DriveProgress):
    """The same of the real pgbench, which tells more."""

    latency_s: float | None = None  # mean of what ended in the last second; None: nothing did


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """How far a load is."""

    phase: str  # prepare, copy, index, vacuum, foreign_keys, finish, done
    rows: int  # sent
    rows_total: int  # to send; of a load that goes on, about
    bytes: int  # of COPY data sent
    bytes_per_s: float  # in the copy phase so far; 0 before it
    seconds: float  # since the start
    share: float  # of the work that is done, 0 to 1
    seconds_left: float | None = None  # estimated; None until some work is done
    steps: tuple[str, ...] = ()  # what the connections do at this moment
    work: int = 0  # all of it, that the share is of, in the time of copying a byte


@dataclass(frozen=True, slots=True)
class ExportProgress:
    """How far an export is."""

    done: bool
    rows: int  # written
    rows_total: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class RunBegun:
    """A run begins, or goes on."""

    path: Path  # of the run file
    plan: Plan
    todo: int  # trials that will be measured
    notes: tuple[str, ...] = ()  # what becomes of the rounds of a run that goes on


@dataclass(frozen=True, slots=True)
class PhaseBegun:
    """A phase begins."""

    trial: TrialRecord | None  # None: while the fixture is made
    name: str  # prepare, load, check, restore, start, prewarm, checkpoint, drive, recover, ...


@dataclass(frozen=True, slots=True)
class TrialEnded:
    """A trial has ended, well or badly, and is stored."""

    trial: TrialRecord
    lost: bool = False  # server or machine were lost to the run; how is told once, apart


@dataclass(frozen=True, slots=True)
class LookTaken:
    """A plan was looked at: by a look that decides, or for what its first rounds show so far."""

    rounds: int  # after how many, or in which
    sentences: tuple[str, ...]  # one of each stage that was judged
    left: int  # trials that may still be measured, at most
    decides: bool = True  # else the round goes on

    @property
    def lines(self) -> tuple[str, ...]:
        """Its sentences, each with the rounds that it is of: all so far, not the last alone."""
        when = f"after round {self.rounds}"
        if not self.decides:
            when = "in round 1" if self.rounds == 1 else f"in rounds 1 to {self.rounds}"
        return tuple(f"{when}: {one}" for one in self.sentences)


@dataclass(frozen=True, slots=True)
class StepBegun:
    """An experiment without stages begins to measure something."""

    what: str  # in a few words


@dataclass(frozen=True, slots=True)
class Noted:
    """Something that who waits for the result must know of it."""

    text: str


@dataclass(frozen=True, slots=True)
class PointMeasured:
    """A search for the knee has driven a load."""

    point: Point
    kept: bool  # whether it kept to the limit


Event: TypeAlias = (
    RunBegun | PhaseBegun | LoadProgress | DriveProgress | TrialEnded | LookTaken | StepBegun
    | Noted | PointMeasured
)  # fmt: skip
