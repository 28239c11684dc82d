"""CPUs that the server's processes used over time, by role, in one trial of each stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgdyno.analysis.timeline_facts import Extremes

ROLE_LABELS = {
    "backend": "backends", "background_writer": "background writer", "wal_writer": "WAL writer",
    "io_worker": "I/O workers", "walsender": "WAL senders", "startup": "recovery",
    "telemetry": "pgdyno's own sessions", "other": "postmaster and others",
    "unseen": "ended before they were looked at again",
}  # fmt: skip
"""How roles are called; those that are not in it by their own names."""


@dataclass(frozen=True, slots=True)
class ProcessLine:
    """The roles of one server on the time axis of a trial; all have a value at each point."""

    trial: int
    stage: str
    step_s: float  # about the width of a point
    second: tuple[float, ...]  # middle of each point, since the window began
    roles: Mapping[str, tuple[float, ...]]  # CPUs; the role that used most of them first
    least: tuple[float, ...] = ()  # all together, in the step of each point that used fewest, and
    greatest: tuple[float, ...] = ()  # in that with the most; none where a point is one step
    apart: Mapping[str, Extremes] = field(default_factory=dict)  # the roles, where one is longer
