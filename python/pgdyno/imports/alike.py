"""What checks say of several results, told once: a fact, and the results that it is about."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.imported import Imported, Outcome
from pgdyno.model.wording import listed

_EACH_MAX = 3  # facts of one check that differ in their numbers alone; more are told by the first
_NUMBER = re.compile(r"\d[\d,.]*")


@dataclass(frozen=True, slots=True)
class Alike:
    """A fact that a check found, and the results that it found it in."""

    trap: str
    fact: str  # of the first of them
    places: tuple[int, ...]  # of the results, from 0, rising
    same: bool  # whether it is so to the digit in all of them

    def sentence(self, results: int) -> str:
        """The fact, with the results that it is about where there are several.

        Args:
            results: How many results stand beside each other.
        """
        about = "" if results == 1 else f", {result_numbers(self.places)}"
        more = "" if self.same else f" (of result {self.places[0] + 1}; the others have their own)"
        return f"{self.trap}{about}: {self.fact}{more}"


def alike(results: Sequence[Imported], outcome: Outcome) -> tuple[Alike, ...]:
    """What the checks found, each fact once, in the order of the checks of the first result.

    Args:
        results: As they stand beside each other.
        outcome: Of the checks: "fires", or "unknown" for those that lack something.
    """
    found: dict[str, dict[str, list[int]]] = {}
    for place, one in enumerate(results):
        for check in one.checks:
            if check.outcome == outcome and check.fact is not None:
                found.setdefault(check.trap, {}).setdefault(check.fact, []).append(place)
    return tuple(one for trap, facts in found.items() for one in _of_trap(trap, facts))


def _of_trap(trap: str, facts: dict[str, list[int]]) -> list[Alike]:
    shapes: dict[str, list[str]] = {}
    for fact in facts:
        shapes.setdefault(_NUMBER.sub("#", fact), []).append(fact)
    told = []
    for same in shapes.values():
        if len(same) <= _EACH_MAX:
            told += [Alike(trap, fact, tuple(facts[fact]), same=True) for fact in same]
            continue
        places = sorted(place for fact in same for place in facts[fact])
        told.append(Alike(trap, same[0], tuple(places), same=False))
    return told


def result_numbers(places: Sequence[int]) -> str:
    """Results by their numbers: `result 3`, `results 1 to 5, 7 and 9`."""
    runs: list[list[int]] = []
    for place in sorted(places):
        if runs and place == runs[-1][1] + 1:
            runs[-1][1] = place
        else:
            runs.append([place, place])
    parts = [
        part
        for first, last in runs
        for part in (
            [f"{first + 1} to {last + 1}"]
            if last > first + 1
            else [str(place + 1) for place in range(first, last + 1)]
        )
    ]
    noun = "result" if len(places) == 1 else "results"
    return f"{noun} {listed(parts)}"
