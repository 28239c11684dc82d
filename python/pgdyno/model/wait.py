"""What a session waits for, under the name that the event has in the newest version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

CPU, CPU_WAIT = "cpu", "cpu_wait"
"""Classes of sessions that wait for no event: they run, or want a CPU and have none."""


@dataclass(frozen=True, slots=True)
class Wait:
    """What a session waits for."""

    wait_class: str
    event: str  # `Type:Name`, as 18 calls it; an event that is not listed keeps its name
    is_listed: bool  # False: the catalogue does not know it, and it is of class `other`


WaitOf: TypeAlias = Callable[[str, str], Wait]
"""Of the columns `wait_event_type` and `wait_event` of pg_stat_activity."""
