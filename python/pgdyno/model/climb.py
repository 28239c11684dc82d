"""A climb: what was seen, believed, tried and found at each step, as its run file keeps it."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.bounds import require_within
from pgdyno.model.plan import Plan
from pgdyno.model.proposal import Allowed, Changed, NotTried, Prediction, Try
from pgdyno.model.settings import Rung

FUTILE_MAX = 3
"""Steps one after the other that bring nothing, after which a climb ends."""
MINUTES_MIN = 1
AT_ONCE_MAX = 4


@dataclass(frozen=True, slots=True)
class ClimbLimits:
    """How far a climb may go."""

    lowest: Rung = Rung.D0  # that a stage may stand on
    client: bool = False  # whether moves may change how the client asks
    host: bool = False  # whether moves may change settings of this machine, while trials run
    minutes: float = 120.0  # for its steps; what judges the end comes after them
    at_once: int = 2  # moves that are tried beside each other
    pinned: tuple[str, ...] = ()  # settings of the server that no stage changes

    def __post_init__(self) -> None:
        require_within("minutes", self.minutes, MINUTES_MIN, None, "A step takes some.")
        require_within(
            "at_once", self.at_once, 1, AT_ONCE_MAX, "So many moves are compared with one base."
        )

    def allowed(self, lowest: Rung) -> Allowed:
        """What moves may do, down to this rung."""
        return Allowed(lowest, self.client, self.host, self.pinned)


@dataclass(frozen=True, slots=True)
class Found:
    """The ratio of two stages, as the report of their run has it."""

    base: str
    ratio: float | None
    low: float | None
    high: float | None
    verdict: str
    reason: str
    rounds: int


@dataclass(frozen=True, slots=True)
class Effect:
    """What a move changed besides throughput: medians of the stage it builds on, and of its own."""

    name: str  # a cost of a transaction (`server_cpu_us`, `wal_bytes`, `read_bytes`), or `p99_ns`
    before: float
    after: float
    kind: str = ""  # of transaction, whose p99 it is


@dataclass(frozen=True, slots=True)
class Seen:
    """What stands behind a step's sentence about its limit."""

    proof: tuple[str, ...] = ()  # the figures of each limit that is named
    cleared: tuple[str, ...] = ()  # titles of classes
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Left:
    """What still takes time at the end."""

    title: str  # of the class
    gain: str  # what its absence could bring
    no_settings: tuple[str, ...]  # what is against it and no setting of the server


@dataclass(frozen=True, slots=True)
class Tried:
    """A move that was tried in a step."""

    move: str
    stage: str  # that it was, in the step's run
    why: str
    against: str  # title of the limit
    rung: Rung
    changes: tuple[Changed, ...]
    predicted: Prediction
    found: Found | None = None  # None: not measured yet
    effects: tuple[Effect, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """What was tried on what was best then."""

    run_file: str  # its name, in the climb's folder
    run: str  # its ident
    base: str  # stage that was built on, in this run and in the one before
    seen: str  # what limited it, a sentence
    tried: tuple[Tried, ...]
    not_tried: tuple[NotTried, ...]
    accepted: str | None = None  # the move that was kept; None: none
    seconds: float | None = None  # that it took; None: it did not end
    trials: int = 0  # that were measured
    behind: Seen = Seen()


@dataclass(frozen=True, slots=True)
class Judged:
    """Stages that were measured beside each other at the end, on fresh rounds."""

    run_file: str
    run: str
    stages: tuple[str, ...]
    found: tuple[Found, ...]  # of those after the first, against it
    left_out: tuple[NotTried, ...]  # stages that cannot be carried out here
    plain: tuple[str, ...] = ()  # what the run's own report says of the second, in plain words
    beside: tuple[Found, ...] = ()  # the second against each of those after it
    seconds: float = 0.0  # that it took
    trials: int = 0


@dataclass(frozen=True, slots=True)
class ClimbAsked:
    """What a climb begins with."""

    plan: Plan  # whose first stage it begins at
    limits: ClimbLimits


@dataclass(frozen=True, slots=True)
class Climbed:
    """A climb as far as it came."""

    asked: ClimbAsked
    start: Step | None = None  # the first stage alone
    steps: tuple[Step, ...] = ()
    stopped: str | None = None  # why there is no further step, a sentence; None: it goes on
    kept: tuple[str, ...] = ()  # accepted moves that are left, in their order
    without: Judged | None = None  # the best stage, and it without each of its moves
    final: Judged | None = None  # the first stage, the best one, and those that people would take
    beyond: tuple[Try, ...] = ()  # moves of lower rungs against what limits it in the end
    left: tuple[Left, ...] = ()  # what limits it in the end, the largest first

    @property
    def accepted(self) -> tuple[Tried, ...]:
        """The moves that were kept, step by step."""
        return tuple(one for step in self.steps for one in step.tried if one.move == step.accepted)
