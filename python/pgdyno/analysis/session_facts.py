"""What sessions did during the windows: averages of looks, by what each did or waited for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.analysis.timeline_facts import Extremes

GROUP_LABELS = {
    "cpu": "on a CPU",
    "cpu_wait": "waits for a CPU",
    "wal": "WAL",
    "io": "reads, writes",
    "lock": "locks of rows and objects",
    "latch": "short locks within the server",
    "client": "its client",
    "other": "other waits",
}
GROUPS = tuple(GROUP_LABELS)
"""What charts draw in one colour: on a CPU, waiting for one, and the groups of wait events."""

REST = "others"
"""Kinds of sessions that were met too rarely to be told apart."""


@dataclass(frozen=True, slots=True)
class SessionShare:
    """Sessions of one kind, on average over all windows of a stage."""

    name: str  # as the dimension names it, e.g. a class of wait events
    average: float  # sessions at a moment
    low: float | None  # of the error of sampling; None: too few seconds for an interval
    high: float | None
    share: float  # of all that the dimension tells apart
    what: str = ""  # what a class of waits means
    database_s: float = 0.0  # the same as time: the average times the seconds that were looked at


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
    least: tuple[float, ...] = ()  # all together, in the second of each point with the fewest, and
    greatest: tuple[float, ...] = ()  # in that with the most; none where a point is one second
    apart: Mapping[str, Extremes] = field(default_factory=dict)  # the groups, where one is longer


@dataclass(frozen=True, slots=True)
class Blocking:
    """Sessions of one kind that waited for a lock because of sessions of one kind."""

    waiter_kind: str  # of transaction; empty: several send its statement, or it is not ours
    waiter_statement: str
    lock: str  # its type, as pg_locks says it
    mode: str
    relation: str  # empty: of no table, or of one of another database
    blocker_kind: str
    blocker_statement: str  # that it runs, or ran last in its transaction
    blocker_state: str  # as pg_stat_activity has it; empty: not told
    # What it did, the shares of its time: classes of waits, or `prepared transaction`; empty: it
    # was not met.
    blocker_does: Mapping[str, float]
    average: float  # that waited so
    low: float | None  # of the error of sampling; None: too few seconds for an interval
    high: float | None
    waited_s: float  # the average times the seconds that were looked at
    deepest: int  # so many waited so at once, at least: the largest mean of a second


@dataclass(frozen=True, slots=True)
class Queue:
    """The most sessions that were met waiting behind one."""

    sessions: int  # at least: the largest mean of a second
    round: int
    second: float  # since the window began
    head: tuple[str, ...]  # what the session in front did in that second


@dataclass(frozen=True, slots=True)
class StageSessions:
    """What the sessions of a stage did in its windows."""

    stage: str
    seconds: int  # of windows that were looked at
    ticks: int  # looks in them
    active: SessionShare  # all together
    # class, event, statement, kind, relation, blocker, which add up to `active`; and process
    by: Mapping[str, tuple[SessionShare, ...]]
    lines: tuple[SessionLine, ...]
    blocking: tuple[Blocking, ...] = ()  # who blocks whom, those first that waited longest
    deepest: Queue | None = None  # None: none was met
    # of what `others` of a dimension add up, each by its name: other stages may tell it apart
    rest: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
