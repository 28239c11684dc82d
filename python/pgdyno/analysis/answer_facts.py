"""The answer of a report, what puts it in doubt, and the response times behind it: of `facts`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pgdyno.model.wording import listed

Confidence = Literal["high", "limited", "low"]


BEYOND_MIN = 10
"""Requests of a window that took longer than a percentile that is compared."""
TAIL_REQUESTS_MIN = 100 * BEYOND_MIN
"""Requests of a kind in a window whose p99, the shallowest of them, is compared."""


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
    simply: str = ""  # the clause without a term of the field; empty: it has none

    @property
    def whole(self) -> str:
        """The clause with its stages."""
        return f"{self.text}{self._whose}"

    @property
    def plain(self) -> str:
        """The same for everybody."""
        return f"{self.simply or self.text}{self._whose}"

    @property
    def _whose(self) -> str:
        if not self.stages:
            return ""
        names = listed([f"`{name}`" for name in self.stages])
        return " (all stages)" if self.all_stages else f" ({names})"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer: in plain words, as it was found, and what limits the claim."""

    plain: tuple[str, ...]  # sentences without a term of the field
    finding: str
    limits: str
    confidence: Confidence
    doubts: tuple[Doubt, ...]

    def said_simply(self, *, grave: bool) -> tuple[str, ...]:
        """Doubts for everybody; those that differ in terms of the field alone are one."""
        found: dict[str, Doubt] = {}
        for one in self.doubts:
            if one.grave is grave:
                same = found.get(one.simply or one.text)
                all_of = one if same is None else replace(one, stages=(*same.stages, *one.stages))
                found[one.simply or one.text] = all_of
        return tuple(one.plain for one in found.values())

    def doubts_about(self, stage: str) -> tuple[Doubt, ...]:
        """Those that a stage has by itself, and not with all others."""
        return tuple(one for one in self.doubts if stage in one.stages and not one.all_stages)

    def against(self, stage: str) -> tuple[Doubt, ...]:
        """Grave ones that a verdict on a stage stands under: of it, of all, and of the run."""
        return tuple(
            one for one in self.doubts if one.grave and (stage in one.stages or not one.stages)
        )


def confidence_of(doubts: tuple[Doubt, ...]) -> Confidence:
    """High without a doubt, low with a grave one."""
    if any(one.grave for one in doubts):
        return "low"
    return "limited" if doubts else "high"
