"""What the kernel counts for the host as a whole, from /proc/stat.

Source: proc_stat(5). Times are in ticks there, in seconds here.
"""

from __future__ import annotations

import os

from pgdyno.model.cpu_states import CPU_STATES, IDLE_STATES
from pgdyno.sample.sampler import Row

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_IDLE = tuple(map(CPU_STATES.index, IDLE_STATES))
_COUNTERS = {
    "intr": "host.interrupts",
    "ctxt": "host.context_switches",
    "processes": "host.forks",
}
GAUGES = {"procs_running": "host.runnable", "procs_blocked": "host.blocked"}


def parse_host(text: str) -> Row:
    """All that is told of the host.

    Returns:
        `cpu.<state>_s`: CPU seconds since boot, all CPUs together; guest time is in `user` already.
        `cpu.<n>.busy_s`: of one CPU, all but idle and iowait. `host.interrupts`,
        `host.context_switches`, `host.forks` since boot. `host.runnable`, `host.blocked`: threads
        that run or wait for a CPU, and that wait for I/O, at this moment.

    Raises:
        ValueError: There is no line `cpu`.
    """
    row: Row = {}
    for line in text.splitlines():
        word, _, rest = line.partition(" ")
        if word == "cpu":
            ticks = [int(n) for n in rest.split()[: len(CPU_STATES)]]
            row |= {f"cpu.{s}_s": n / TICKS_PER_S for s, n in zip(CPU_STATES, ticks, strict=True)}
        elif word.startswith("cpu"):
            ticks = [int(n) for n in rest.split()[: len(CPU_STATES)]]
            idle = sum(ticks[place] for place in _IDLE)
            row[f"cpu.{word[3:]}.busy_s"] = (sum(ticks) - idle) / TICKS_PER_S
        elif name := _COUNTERS.get(word) or GAUGES.get(word):
            row[name] = int(rest.partition(" ")[0])  # of `intr`: all, before each
    if "cpu.idle_s" not in row:
        raise ValueError("no line `cpu` in /proc/stat")
    return row
