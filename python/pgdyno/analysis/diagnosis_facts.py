"""What diagnosis says of a window and of a stage, as records: text, page and JSON print them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self

from pgdyno.model.units import times_text

Verdict = Literal["finding", "clear", "unknown"]
Outcome = Literal["limit", "tie", "paced", "balanced", "unknown"]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that an answer stands on, beside the limit it was held against."""

    name: str  # in words
    value: float
    unit: str  # share | 1 | s | 1/s | B/s | times | sessions
    low: float | None = None  # 95 % interval of the error of sampling; None: not sampled
    high: float | None = None
    limit: float | None = None  # None: told, not judged


@dataclass(frozen=True, slots=True)
class Gain:
    """So many times the throughput, if the resource were free and all else took what it takes."""

    low: float  # 95 % interval of the bound
    bound: float
    high: float
    capped_by: str | None = None  # what would be full then; None: nothing that is known
    may_save: str = ""  # work that its absence saves besides: then more is possible

    @property
    def text(self) -> str:
        """The bound, and its interval: `×1.93 (1.80 to 2.10)`; a cap is the same in all redraws."""
        if self.low == self.high:
            return f"×{self.bound:.2f}"
        return times_text(self.bound, self.low, self.high)


@dataclass(frozen=True, slots=True)
class DiagnosedKnob:
    """Something that could be changed."""

    name: str  # of the catalogue, or in words
    rung: str  # of durability, the lowest that a value of it stands on; D0: it loses nothing
    why: str


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What one class of limits answers of one window."""

    number: int  # of the class, 1 to 16
    name: str  # of its file
    title: str  # what limits, as a sentence names it
    verdict: Verdict
    fact: str  # a sentence; unknown: the reason
    figures: tuple[Figure, ...] = ()
    gain: Gain | None = None  # a finding's
    confounders: tuple[str, ...] = ()  # what looks alike
    knobs: tuple[DiagnosedKnob, ...] = ()
    chance: float | None = None  # that it comes first, of seconds drawn anew
    held_by: str | None = None  # title of what its holders do


@dataclass(frozen=True, slots=True)
class TimePart:
    """A part of the session time of a window."""

    name: str
    title: str
    share: float  # of all session time, as sessions were met
    low: float
    high: float
    root: float  # the same, waits moved to what their holders did

    @classmethod
    def all_else(cls, share: float, root: float) -> Self:
        """What is not told part by part, by its shares in `share` and `root`."""
        return cls("rest", "all else", share, share, share, root)


@dataclass(frozen=True, slots=True)
class StatementShare:
    """What one statement has of the session time."""

    kind: str
    statement: str
    in_flight: float | None  # connections with it under way, by the driver; None: not told
    active: float | None  # sessions that were met with it; None: met by its single statements
    most: str  # what these did or waited for most


@dataclass(frozen=True, slots=True)
class WindowDiagnosis:
    """What limits one window."""

    trial: int
    round: int
    outcome: Outcome
    limits: tuple[str, ...]  # names of rules: one, or the two of a tie
    sentence: str
    deciding: str | None  # what would decide; None: it is decided
    sessions: float | None  # on average; None: no account
    parts: tuple[TimePart, ...]
    statements: tuple[StatementShare, ...]
    answers: tuple[RuleAnswer, ...]  # of every class, in their order

    def answer(self, name: str) -> RuleAnswer:
        """Of the class of this name; a missing one is a bug."""
        return next(one for one in self.answers if one.name == name)


@dataclass(frozen=True, slots=True)
class StageDiagnosis:
    """What limits a stage: what most of its windows say."""

    stage: str
    outcome: Outcome
    limits: tuple[str, ...]
    sentence: str
    agreeing: int  # windows that say so
    windows: tuple[WindowDiagnosis, ...]
    shown: int | None  # place in `windows` of the one whose proof is shown; None: there is none

    @property
    def window(self) -> WindowDiagnosis | None:
        """The one whose proof is shown."""
        return None if self.shown is None else self.windows[self.shown]
