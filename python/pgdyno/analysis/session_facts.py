"""What sessions did during the windows: averages of looks, by what each did or waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

GROUPS = ("cpu", "cpu_wait", "wal", "io", "lock", "latch", "client", "other")
"""What charts draw in one colour: on a CPU, waiting for one, and the groups of wait events."""

REST = "others"
"""Kinds of sessions that were met too rarely to be told apart."""


@dataclass(frozen=True, slots=True)
class SessionShare:
    """Sessions of one kind, on average over all windows of a stage."""

    name: str  # as the dimension names it, e.g. a class of wait events
    average: float  # sessions at a moment; times the windows' seconds: database time
    low: float | None  # of the error of sampling; None: too few seconds for an interval
    high: float | None
    share: float  # of all that the dimension tells apart
    what: str = ""  # what a class of waits means


@dataclass(frozen=True, slots=True)
class RoundSessions:
    """What the sessions of one window did."""

    active: float  # on average
    classes: Mapping[str, float]  # shares of their active time, by class of waits


@dataclass(frozen=True, slots=True)
class SessionLine:
    """Active sessions of a trial over time, on the axis of its throughput."""

    trial: int
    round: int
    stage: str
    step_s: float  # width of one point
    second: tuple[float, ...]  # middle of each point, since the window began
    groups: Mapping[str, tuple[float, ...]]  # sessions, by those of `GROUPS` that were met


@dataclass(frozen=True, slots=True)
class StageSessions:
    """What the sessions of a stage did in its windows."""

    stage: str
    seconds: int  # of windows that were looked at
    ticks: int  # looks in them
    active: SessionShare  # all together
    # class, event, statement, kind, blocker, process; of those in queues for locks: relation
    by: Mapping[str, tuple[SessionShare, ...]]
    lines: tuple[SessionLine, ...]
