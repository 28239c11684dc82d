"""What a process costs while it runs, read from /proc: CPU, waits for a CPU, switches, memory.

For drivers that are not ours; our own accounts for itself (`crates/drive/src/measure/cpu.rs`).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pgdyno.model.client import Client
from pgdyno.model.counters import growth
from pgdyno.model.run import Series

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_NS = 1e9


@dataclass(frozen=True, slots=True)
class ThreadSample:
    """Counters of one thread."""

    cpu_ns: int
    wait_ns: int  # runnable, without a CPU
    voluntary: int
    involuntary: int


_NOTHING = ThreadSample(0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Sample:
    """Counters of a process at an instant."""

    unix_ns: int
    user_s: float
    system_s: float
    rss_max_bytes: int
    threads: dict[int, ThreadSample]  # by the kernel's number


def sample(pid: int, proc: Path = Path("/proc")) -> Sample | None:
    """Read the counters of a process; None if it has ended."""
    folder = proc / str(pid)
    try:
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        status = (folder / "status").read_text()
        threads = {int(one.name): _thread(one) for one in (folder / "task").iterdir()}
    except (FileNotFoundError, ProcessLookupError):
        return None
    resident = re.search(r"VmHWM:\s+(\d+) kB", status)
    if resident is None:  # it has ended, but nobody has been told yet
        return None
    user, system = (int(field) / _TICKS_PER_S for field in fields[11:13])
    return Sample(time.time_ns(), user, system, int(resident[1]) * 1024, threads)


def _thread(folder: Path) -> ThreadSample:
    cpu_ns, wait_ns, _ = (folder / "schedstat").read_text().split()
    switches = re.findall(r"ctxt_switches:\s+(\d+)", (folder / "status").read_text())
    return ThreadSample(int(cpu_ns), int(wait_ns), *map(int, switches))


def _thread_counter(tid: int, of: Callable[[ThreadSample], int], one: Sample) -> int:
    return of(one.threads.get(tid, _NOTHING))


def cost(samples: Sequence[Sample], window_ns: tuple[int, int], cpus: int) -> Client:
    """What the process cost in a window, by the samples around each end, as far as these tell.

    Args:
        samples: In the order of time, two or more, from before the window to after it.
        window_ns: Begin and end.
        cpus: That the process may use.
    """
    window_s = (window_ns[1] - window_ns[0]) / _NS
    fullest = max(samples, key=lambda one: len(one.threads))
    tids = sorted(fullest.threads)
    # Threads that are not yet there have spent nothing; of those that have gone nobody knows.
    there = [
        one for one in samples if one.unix_ns <= fullest.unix_ns or tids == sorted(one.threads)
    ]
    times = np.array([one.unix_ns for one in there], dtype=np.int64)

    def grown(of: Callable[[Sample], float]) -> float | None:
        values = np.array([of(one) for one in there], dtype=np.float64)
        return growth(Series("", "", "counter", times, values), window_ns)

    def of_threads(of: Callable[[ThreadSample], int]) -> list[float]:
        """Nothing where it is not known of all of them."""
        each = [grown(partial(_thread_counter, tid, of)) for tid in tids]
        known = [one for one in each if one is not None]
        return known if len(known) == len(each) else []

    def switches(of: Callable[[ThreadSample], int]) -> int | None:
        return round(sum(each)) if (each := of_threads(of)) else None

    user_s, system_s = grown(lambda one: one.user_s), grown(lambda one: one.system_s)
    share = None
    if user_s is not None and system_s is not None:
        share = (user_s + system_s) / (window_s * cpus)
    wait_s = tuple(value / _NS for value in of_threads(lambda one: one.wait_ns))
    return Client(
        user_s=user_s,
        system_s=system_s,
        window_s=window_s,
        cpus=cpus,
        share_of_host=share,
        voluntary_switches=switches(lambda one: one.voluntary),
        involuntary_switches=switches(lambda one: one.involuntary),
        run_queue_wait_s=sum(wait_s) if wait_s else None,
        threads=len(tids),
        rss_max_bytes=max(one.rss_max_bytes for one in samples),
        thread_cpu_s=tuple(value / _NS for value in of_threads(lambda one: one.cpu_ns)),
        thread_wait_s=wait_s,
    )
