"""The answer of a report, what puts it in doubt, and the response times behind it: of `facts`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pgdyno.model.wording import listed

Confidence = Literal["high", "limited", "low"]


@dataclass(frozen=True, slots=True)
class TailFacts:
    """How long the slowest requests of a stage take against those of another; paired by round.

    Ratios are of response times: above 1 they take longer, which is worse.
    """

    kind: str  # of transaction
    percentile: str  # p99 | p99.9
    base: str
    ratio: float | None
    low: float | None
    high: float | None
    confidence: float
    rounds: int  # pairs behind it
    verdict: str  # better | worse | equivalent | undecided | not judged
    reason: str  # of the verdict, one clause


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that limits what a run shows."""

    text: str  # a clause, without the stages
    grave: bool  # a check found something wrong; else it is not known, or little was measured
    stages: tuple[str, ...] = ()  # that it is about; none: the run as a whole
    all_stages: bool = False  # of those there are, several

    @property
    def whole(self) -> str:
        """The clause with its stages."""
        if not self.stages:
            return self.text
        names = listed([f"`{name}`" for name in self.stages])
        if self.all_stages:
            names = "all stages"
        return f"{self.text} ({names})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer: in plain words, as it was found, and what limits the claim."""

    plain: tuple[str, ...]  # sentences without a term of the field
    finding: str
    limits: str
    confidence: Confidence
    doubts: tuple[Doubt, ...]

    def doubts_about(self, stage: str) -> tuple[Doubt, ...]:
        """Those that a stage has by itself."""
        return tuple(one for one in self.doubts if stage in one.stages)


def confidence_of(doubts: tuple[Doubt, ...]) -> Confidence:
    """High without a doubt, low with a grave one."""
    if any(one.grave for one in doubts):
        return "low"
    return "limited" if doubts else "high"
