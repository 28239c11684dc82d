"""What a check of one window answers: Finding, Clear or Unknown, with its evidence.

Unknown is not Clear: a check that lacks its inputs says so.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Evidence:
    """A measured value beside the limit it was held against."""

    name: str
    value: float
    unit: str  # "1" for shares
    limit: float | None = None  # None: told, not judged


@dataclass(frozen=True, slots=True)
class Finding:
    """Something a reader must know before believing the number."""

    fact: str
    advice: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Clear:
    """Looked at, and not so."""

    fact: str
    evidence: tuple[Evidence, ...] = ()


@dataclass(frozen=True, slots=True)
class Unknown:
    """Cannot be told from what was measured."""

    fact: str
    evidence: tuple[Evidence, ...] = ()


Answer = Finding | Clear | Unknown
