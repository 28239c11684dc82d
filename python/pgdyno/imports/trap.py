"""What a trap is: a class of reading wrong, and its check on what was imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pgdyno.model.imported import Imported


class Unknown(str):
    """What a check would have to know."""

    __slots__ = ()


Check = Callable[[Imported, Sequence[Imported]], str | None]


@dataclass(frozen=True, slots=True)
class Trap:
    """A class of reading wrong."""

    ident: str
    tools: tuple[str, ...]  # none: all
    what: str
    fires: str
    check: Check

    def applies(self, one: Imported) -> bool:
        """Whether a result is of a tool that sets it."""
        return not self.tools or one.tool in self.tools


TRAPS: list[Trap] = []
"""In the order of their checks below."""


def trap(ident: str, *tools: str, what: str, fires: str) -> Callable[[Check], Check]:
    """Make a check one of `TRAPS`; for the arguments see `Trap`."""

    def note(check: Check) -> Check:
        TRAPS.append(Trap(ident, tools, what, fires, check))
        return check

    return note


def number(one: Imported, condition: str) -> float | None:
    """A condition that is a number; None if it is not told."""
    value = one.conditions.get(condition)
    return float(value) if isinstance(value, int | float) else None
