"""What a file is found to have: where, how bad, what is the matter, and what to do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pgdyno.linter.source import Assignment


class Severity(StrEnum):
    """How bad it is, worst first."""

    DANGEROUS = "dangerous"  # data, service or secrets are at risk
    CONTRADICTORY = "contradictory"  # right one by one, not together; often it does not start
    GONE = "gone"  # this version does not have it; it is refused, or ignored
    INVALID = "invalid"  # a value that it cannot have
    UNKNOWN = "unknown"  # no version has it
    INEFFECTIVE = "ineffective"  # it changes nothing, or not what was meant
    NOTE = "note"  # worth knowing

    @property
    def rank(self) -> int:
        """0 is the worst."""
        return list(Severity).index(self)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is the matter with one setting."""

    at: Assignment
    severity: Severity
    text: str
    hint: str = ""
    rule: str = ""  # its name in the catalogue; empty: follows from the knob alone
