"""CPU time that a host had in a window, and how much of it worked for nobody.

The kernel measures the time in which a CPU is idle, and samples the other states by ticks. A
virtual machine loses ticks, so that its states add up to less than the time that passed: to 86% of
it on one that read from its disk all the time. Shares of that sum would count idle time too high.

Source: proc_stat(5); Linux, kernel/time/tick-sched.c, `get_cpu_idle_time_us`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from pgdyno.model.cpu_states import CPU_STATES, IDLE_STATES

HOST_IDLE_COLUMNS = tuple(f"cpu.{state}_s" for state in CPU_STATES)
"""The counters that tell how idle a host was."""
IDLE_COLUMNS = tuple(f"cpu.{state}_s" for state in IDLE_STATES)
_OF_ONE = re.compile(r"cpu\.\d+\.busy_s")


def host_cpu_s(deltas: Mapping[str, float], window_s: float) -> float:
    """CPU time of all CPUs of a host, whether the kernel counted it to a state or not.

    Args:
        deltas: Growth of the counters over a window: `cpu.<state>_s` in seconds, and by their names
            those of single CPUs, as many as there are.
        window_s: How long it was.
    """
    counted_s = sum(deltas[name] for name in HOST_IDLE_COLUMNS if name in deltas)
    return max(counted_s, window_s * sum(map(is_of_one_cpu, deltas)))


def is_of_one_cpu(name: str) -> bool:
    """Whether a series is that of one CPU, of which there are as many as CPUs."""
    return _OF_ONE.fullmatch(name) is not None


def host_idle_share(deltas: Mapping[str, float], window_s: float) -> float | None:
    """Idle part of a host's CPU time, waiting for disks included; None where it was not sampled."""
    total_s = host_cpu_s(deltas, window_s)
    if total_s <= 0 or "cpu.idle_s" not in deltas:
        return None
    return sum(deltas.get(name, 0.0) for name in IDLE_COLUMNS) / total_s
