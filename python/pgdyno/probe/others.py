"""How busy other programs kept the CPUs while we probed: probes that wait for a CPU show that."""

from __future__ import annotations

import os
import resource
import time
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.cpu_states import CPU_STATES, IDLE_STATES
from pgdyno.model.numbers import finite

_STAT = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class CpuTime:
    """What CPUs had done at a moment, in seconds."""

    at_s: float
    busy_s: float  # of all CPUs
    ours_s: float  # of this process, and of those that it started and that have ended

    def others_since(self, before: CpuTime) -> float:
        """How many CPUs were busy with what is not ours, on average; never below 0."""
        others_s = (self.busy_s - before.busy_s) - (self.ours_s - before.ours_s)
        return max(0.0, others_s) / (self.at_s - before.at_s)


def cpu_time() -> CpuTime | None:
    """What they have done until now; None: the kernel does not say."""
    try:
        busy_s = busy_seconds(_STAT.read_text())
    except (OSError, ValueError):
        return None
    return CpuTime(time.monotonic(), busy_s, _used_s(resource.RUSAGE_SELF) + children_s())


def children_s() -> float:
    """CPU time of programs that we started and that have ended."""
    return _used_s(resource.RUSAGE_CHILDREN)


def busy_seconds(text: str) -> float:
    """Of all CPUs, from what `/proc/stat` holds.

    Raises:
        ValueError: It is none.
    """
    name, *fields = text.partition("\n")[0].split()
    states = dict(zip(CPU_STATES, fields, strict=False))  # what follows is part of these
    if name != "cpu" or len(states) < len(CPU_STATES):
        raise ValueError("no line of all CPUs")
    ticks = [finite(value) for state, value in states.items() if state not in IDLE_STATES]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def _used_s(who: int) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime
