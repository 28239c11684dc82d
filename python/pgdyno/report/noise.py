"""What identical stages show, in sentences: the spread, and how many rounds a difference takes."""

from __future__ import annotations

from pgdyno.analysis.facts import Facts
from pgdyno.model.wording import plural


def lines(facts: Facts) -> list[str]:
    """The noise floor of a run; none where no stage was measured twice."""
    found = facts.noise_floor
    if found is None:
        return []
    said = [f"Noise floor: {found.sentence}.", *(f"Noise floor: {one}." for one in found.warnings)]
    if found.needed:
        takes = "; ".join(f"{_rounds(rounds)} for {effect:.0%}" for effect, rounds in found.needed)
        said.append(f"To see a difference with 80% chance takes: {takes}.")
    return said


def _rounds(rounds: int | None) -> str:
    return "more than 1,000 rounds" if rounds is None else plural(rounds, "round")
