"""What may be tried next against a stage's limit, and what is believed of it beforehand."""

from __future__ import annotations

from dataclasses import dataclass

from pgdyno.model.settings import Rung
from pgdyno.model.units import times_text


@dataclass(frozen=True, slots=True)
class Allowed:
    """What moves may do."""

    lowest: Rung  # of durability, that a stage may stand on
    client: bool = False  # change how the client asks
    host: bool = False  # change settings of this machine while trials run
    pinned: tuple[str, ...] = ()  # settings of the server that they leave alone


@dataclass(frozen=True, slots=True)
class Prediction:
    """How many times the throughput a stage is believed to reach, written down before it ran."""

    ratio: float  # to the stage that it builds on
    low: float
    high: float  # the bound, had the limit's resource cost nothing
    limit: str  # name of the rule that it is against

    def __str__(self) -> str:
        return times_text(self.ratio, self.low, self.high)


@dataclass(frozen=True, slots=True)
class Changed:
    """A setting of the server or of the machine, or a key of the client, that a try changes."""

    name: str
    before: str  # as it would be without; "" where that is not known
    after: str
    of_client: bool = False
    of_host: bool = False

    @property
    def table(self) -> str:
        """Where a stage of a plan has it."""
        return "client" if self.of_client else "host" if self.of_host else "settings"


@dataclass(frozen=True, slots=True)
class Try:
    """A move that may be tried next."""

    move: str
    why: str
    against: str  # title of the limit
    rung: Rung  # that its stage stands on
    changes: tuple[Changed, ...]
    predicted: Prediction
    seconds: float  # that it takes to measure, the stage it builds on included
    plan: str  # TOML, which measures both

    @property
    def gain_per_hour(self) -> float:
        """What is believed to be gained, by the time that finding out takes."""
        return (self.predicted.ratio - 1) / self.seconds * 3600


@dataclass(frozen=True, slots=True)
class NotTried:
    """A move against a limit that was found, and why it is not proposed."""

    move: str
    why: str


@dataclass(frozen=True, slots=True)
class Proposed:
    """What a run says should be tried next."""

    run: str  # ident
    stage: str  # that is built on
    sentence: str  # what limits it
    deciding: str | None  # what would decide, where that is not known
    lowest_rung: Rung
    tries: tuple[Try, ...]  # the best first
    not_tried: tuple[NotTried, ...]
    found_in_some: tuple[str, ...] = ()  # what not all rounds found: moves against it do not count
