"""What a stage may lose: every loss with its rung, its layer, and where it was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pgdyno.model.errors import PlanError
from pgdyno.model.wording import listed


class Rung(StrEnum):
    """A level of the durability ladder; a stage has the lowest rung of all its losses."""

    D0 = "D0"  # fsync, full page writes and synchronous commit are on
    D1 = "D1"  # full pages are compressed
    D2 = "D2"  # never consistency
    D3 = "D3"
    D4 = "D4"
    D5 = "D5"  # or a failed flush goes unnoticed
    D6 = "D6"


def rung_named(text: str) -> Rung:
    """The rung that somebody named.

    Raises:
        PlanError: There is none of this name.
    """
    if text not in list(Rung):
        raise PlanError(f"no rung is called {text!r}", f"Rungs are {', '.join(Rung)}.")
    return Rung(text)


LADDER = {
    "D0": "nothing is lost",
    "D1": "nothing is lost; full pages are compressed",
    "D2": "a crash may lose the last commits",
    "D3": "there is no replica and no recovery to a point in time",
    "D4": "a crash of the machine may tear pages",
    "D5": "what was flushed may not be on the disk",
    "D6": "a crash of the machine loses the data",
}
"""What each rung may lose, for everybody."""

NOT_KNOWN = "D?"
"""In place of a rung where nothing was found, but not everything could be looked at."""

HARMLESS = (Rung.D0, Rung.D1)
"""Rungs on which nothing is lost that was committed."""


@dataclass(frozen=True, slots=True)
class Loss:
    """One thing that gives up durability."""

    rung: Rung
    what: str  # e.g. "synchronous_commit = off"
    loses: str  # a clause, e.g. "a crash may lose the last commits, never consistency"
    layer: str  # server, database, role, session, workload, tables, process, file system, device
    source: str  # where it was read, e.g. "plans/demo.toml: stage async"

    @property
    def said(self) -> str:
        """What it is; where that leaves the rung as it is, with what it costs all the same."""
        return f"{self.what} loses {self.loses}" if self.rung is Rung.D0 else self.what


@dataclass(frozen=True, slots=True)
class Durability:
    """What was found on all layers that could be looked at, and which could not."""

    losses: tuple[Loss, ...] = ()
    not_known: tuple[str, ...] = ()  # what could not be read, and why; clauses

    @property
    def lowest(self) -> Rung:
        """The lowest rung of what was found; what is not known may be lower."""
        return max((loss.rung for loss in self.losses), default=Rung.D0)

    @property
    def rung(self) -> Rung | None:
        """The rung; None where nothing was found, but not everything could be looked at."""
        return None if self.not_known and self.lowest in HARMLESS else self.lowest

    @property
    def reasons(self) -> tuple[Loss, ...]:
        """What puts it on its rung, lowest first; beside a loss, what loses nothing is none."""
        for harmless in (HARMLESS, (Rung.D0,)):
            if lowering := tuple(loss for loss in self.losses if loss.rung not in harmless):
                return lowering
        return self.losses


def together(*parts: Durability) -> Durability:
    """All that was found anywhere, lowest rungs first, each once."""
    losses = dict.fromkeys(loss for part in parts for loss in part.losses)
    not_known = dict.fromkeys(text for part in parts for text in part.not_known)
    ordered = sorted(losses, key=lambda loss: loss.rung, reverse=True)
    return Durability(tuple(ordered), tuple(not_known))


def over_servers(parts: Mapping[str, Durability]) -> Durability:
    """What several servers lose, each loss once: its source names those that have it.

    Args:
        parts: What was found of each, by its name.
    """
    losses: dict[Loss, list[str]] = {}
    not_known: dict[str, list[str]] = {}
    for name, part in parts.items():
        for loss in part.losses:
            losses.setdefault(loss, []).append(name)
        for text in part.not_known:
            not_known.setdefault(text, []).append(name)
    return together(
        Durability(
            tuple(
                replace(loss, source=f"{servers_text(names, len(parts))}: {loss.source}")
                for loss, names in losses.items()
            ),
            tuple(
                f"{servers_text(names, len(parts))}: {text}" for text, names in not_known.items()
            ),
        )
    )


def servers_text(names: Sequence[str], of: int) -> str:
    """Some of so many servers, in words: `server a`, `servers a and b`, `all servers`."""
    if len(names) == of:
        return "all servers"
    return f"{'server' if len(names) == 1 else 'servers'} {listed(list(names))}"
