"""What is easily read wrong in results of others: a check each, found by location.

A check fires with a sentence, is silent, or unknown: then it says what it would have to know. T1 to
T15 are those that tools set, E those that the field reports behind `plans/` made and that printed
output can show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache

from pgdyno.imports.trap import TRAPS, Trap, Unknown
from pgdyno.model.by_location import modules_of
from pgdyno.model.imported import Imported, Warned


@cache
def traps() -> tuple[Trap, ...]:
    """All checks: T1 to T15, then E."""
    for _ in modules_of(__name__):
        pass  # each notes its checks as it is imported
    return tuple(sorted(TRAPS, key=lambda one: (one.ident[0] != "T", int(one.ident[1:]))))


def checked(results: Sequence[Imported]) -> tuple[Imported, ...]:
    """The results, each with what the checks say of it beside the others."""
    return tuple(
        replace(
            one, checks=tuple(_warned(trap, one, results) for trap in traps() if trap.applies(one))
        )
        for one in results
    )


def _warned(trap: Trap, one: Imported, results: Sequence[Imported]) -> Warned:
    said = trap.check(one, [other for other in results if other is not one])
    if said is None:
        return Warned(trap.ident, "silent", None)
    return Warned(trap.ident, "unknown" if isinstance(said, Unknown) else "fires", str(said))
