"""What is said of a machine: parts of lines, each a value beside what is advised."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

_NAMED = 4  # devices that a folded line names


@dataclass(frozen=True, slots=True)
class Line:
    """One thing of the machine."""

    what: str
    value: str
    note: str = ""  # what belongs to the value and is not compared
    advised: str = ""  # empty: the catalogue advises nothing
    search: str = ""  # what is worth trying
    why: str = ""

    @property
    def as_advised(self) -> bool:
        """Whether the value is the advised one, to the letter."""
        return self.advised == self.value


@dataclass(frozen=True, slots=True)
class Part:
    """One part of the machine."""

    title: str
    lines: tuple[Line, ...]


def folded(part: Part) -> Part:
    """The same for people: devices of which the same is to be said share a line."""
    return Part(part.title, tuple(_folded(part.lines)))


def _folded(lines: tuple[Line, ...]) -> Iterator[Line]:
    for _, knob in groupby(lines, key=lambda line: line.what.partition("@")[0]):
        alike: dict[Line, list[str]] = {}
        for line in knob:
            alike.setdefault(replace(line, what=""), []).append(line.what)
        for line, keys in alike.items():
            name, _, first = keys[0].partition("@")
            devices = [first, *(key.partition("@")[2] for key in keys[1:])]
            shown = ", ".join(devices[:_NAMED])
            if len(devices) > _NAMED:
                shown += f" and {len(devices) - _NAMED} more"
            yield replace(line, what=f"{name}@{shown}" if shown else name)
