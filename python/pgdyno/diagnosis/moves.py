"""Which moves are against the limits of a stage, and what each is believed to bring."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.analysis.diagnosis_facts import RuleAnswer, StageDiagnosis, WindowDiagnosis
from pgdyno.catalog import Move, moves
from pgdyno.model.proposal import Prediction

LEAST = 1.005
"""Of a ratio: what is believed to bring less is not worth a trial."""

_DIGITS = 4  # as a plan file has it


@dataclass(frozen=True, slots=True)
class Candidate:
    """A move against a limit that was found."""

    move: Move
    against: RuleAnswer
    predicted: Prediction


def candidates(diagnosed: StageDiagnosis) -> tuple[Candidate, ...]:
    """Moves against what was found in a stage, those that are believed to bring most first.

    A paced load has no limit, and of a window that tells nothing nothing can be believed. What all
    others found counts, also where they do not agree on what comes first, or where that is not
    known because a class is that may be larger: what a finding could bring at most stands.
    """
    windows = [one for one in diagnosed.windows if _tells(one)]
    found = [one for one in map(_found, zip(*(one.answers for one in windows), strict=True)) if one]
    best = [one for move in moves().values() if (one := _best(move, found)) is not None]
    return tuple(sorted(best, key=lambda one: (-one.predicted.ratio, one.move.name)))


def found_in_some(diagnosed: StageDiagnosis) -> tuple[str, ...]:
    """Titles of what some windows found and others did not: no move against it is a candidate."""
    windows = [one for one in diagnosed.windows if _tells(one)]
    found = []
    for answers in zip(*(one.answers for one in windows), strict=True):
        if _found(answers) is None and any(one.verdict == "finding" for one in answers):
            found.append(answers[0].title)
    return tuple(found)


def _tells(window: WindowDiagnosis) -> bool:
    return window.outcome != "paced" and any(one.verdict != "unknown" for one in window.answers)


def _found(answers: Sequence[RuleAnswer]) -> RuleAnswer | None:
    """Of the answers of a class, the one that could bring least; None: a window did not find it."""
    found = [(one.gain.bound, one) for one in answers if one.verdict == "finding" and one.gain]
    return min(found, key=lambda pair: pair[0])[1] if len(found) == len(answers) else None


def _best(move: Move, found: Sequence[RuleAnswer]) -> Candidate | None:
    """Against the limit, of those that it is against, where it is believed to bring most."""
    against = [one for one in found if one.name in move.takes]
    made = [Candidate(move, one, _predicted(move, one)) for one in against]
    return max(made, key=lambda one: one.predicted.ratio, default=None)


def _predicted(move: Move, answer: RuleAnswer) -> Prediction:
    """A share of what the resource could bring at most; perhaps nothing, and never more."""
    assert answer.gain is not None
    high = max(answer.gain.high, answer.gain.bound)
    return Prediction(
        round(answer.gain.bound ** move.takes[answer.name], _DIGITS),
        1.0,
        round(high, _DIGITS),
        answer.name,
    )
