"""CPU time of the host from /proc/stat, and of the server's processes from /proc/<pid>/stat.

Source: proc_stat(5), proc_pid_stat(5). Times are in ticks there, in seconds here.
"""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.sample.sampler import Row

_TICKS = os.sysconf("SC_CLK_TCK")
STATES = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")


def parse_host(text: str) -> Row:
    """CPU seconds since boot, all CPUs together, by state; guest time is in `user` already."""
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["cpu"]:
            ticks = [int(word) for word in words[1 : len(STATES) + 1]]
            return {f"cpu.{name}_s": n / _TICKS for name, n in zip(STATES, ticks, strict=True)}
    raise ValueError("no line `cpu` in /proc/stat")


def parse_process(text: str) -> tuple[int, float, float]:
    """Parent, own CPU seconds, and CPU seconds of children that have ended.

    The name in parentheses may hold anything, so fields are counted from the last one.
    """
    fields = text.rpartition(")")[2].split()
    ticks = [int(field) for field in fields[11:15]]  # utime stime cutime cstime
    return int(fields[1]), (ticks[0] + ticks[1]) / _TICKS, (ticks[2] + ticks[3]) / _TICKS


def server_cpu_s(proc: Path, postmaster: int) -> float:
    """CPU seconds of a postmaster and all its children, living or reaped."""
    _, own, reaped = parse_process((proc / str(postmaster) / "stat").read_text())
    total = own + reaped
    children = (proc / str(postmaster) / "task" / str(postmaster) / "children").read_text()
    for child in children.split():
        try:
            _, child_own, child_reaped = parse_process((proc / child / "stat").read_text())
        except (FileNotFoundError, ProcessLookupError):
            continue  # it ended since; the postmaster's reaped time holds it next time
        total += child_own + child_reaped
    return total
