"""What host and server did over time, in one trial of each stage."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SignalUnit = Literal["share", "B/s", "B", "s", "1/s", "1"]


@dataclass(frozen=True, slots=True)
class SignalLine:
    """A line on the time axis of a trial; it has a point at least."""

    trial: int
    stage: str
    second: tuple[float, ...]  # since the window began
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """Something that was sampled, stage by stage."""

    name: str  # e.g. "WAL written"
    unit: SignalUnit
    lines: tuple[SignalLine, ...]  # of stages that have it, in the order of the plan


@dataclass(frozen=True, slots=True)
class ResponseMap:
    """Requests of a trial by when they ended and how long they took, all kinds together."""

    trial: int
    round: int
    stage: str
    edges_s: tuple[float, ...]  # of the columns, since the window began; (columns + 1,)
    edges_ns: tuple[int, ...]  # of the rows, from the shortest time; (rows + 1,)
    counts: tuple[tuple[int, ...], ...]  # (rows, columns)
