"""CPU time of the load that the kernel takes for what a class asks of it.

A round trip, a page that is read, a flush: each makes the kernel copy, wake and wait, and none of
that is left where it is not asked for. How often is counted; what one takes is a price of ours, and
all of them together take no more than the kernel was seen to take.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from pgdyno.analysis.account_facts import RUNNING, WANTS_CPU, Draws
from pgdyno.analysis.window_facts import WindowFacts
from pgdyno.diagnosis.host import host_use
from pgdyno.diagnosis.rule import Seen
from pgdyno.model.cpu_states import CPU_STATES, IDLE_STATES

_KERNEL = ("system", "irq", "softirq")
_BUSY = tuple(name for name in CPU_STATES if name not in (*IDLE_STATES, "steal"))
_ROUND_TRIP_S, _PAGE_S, _DEVICE_READ_S, _FLUSH_S = 10e-6, 2e-6, 10e-6, 30e-6
"""On either side together; of a page of the kernel's cache; of one of the device; of a flush."""
STALLED = 0.01
"""Of time, in which some task waits for memory: with less, there is enough."""
MEMORY_STALLED = "psi.memory.some_s"
ROUND_TRIPS, READ, FLUSH, MEMORY = "round_trips", "read", "flush", "memory"
"""What is asked for; of memory, what the kernel frees to have some."""


def asked(window: WindowFacts) -> Mapping[str, float]:
    """Part of the CPU time of server and client, by what is asked for; empty: not known.

    A transaction takes a round trip at least: only those beyond the first count. What the kernel
    takes beyond all prices is memory's where tasks wait for it.
    """
    if not window.driver.beside_server or not window.has(*(f"cpu.{one}_s" for one in CPU_STATES)):
        return {}
    kernel_s, busy_s = (
        sum(window.grown[f"cpu.{one}_s"] for one in names) / window.window_s
        for names in (_KERNEL, _BUSY)
    )
    if busy_s <= 0:
        return {}
    trips = max(1.0, window.load.round_trips or 1.0)
    pages, reads = window.per_s("database.blocks_read"), window.per_s("disk.reads")
    first_s = window.load.per_s * _ROUND_TRIP_S
    taken_s = {
        ROUND_TRIPS: (trips - 1.0) * first_s,
        READ: (pages or 0.0) * _PAGE_S + (reads or 0.0) * _DEVICE_READ_S,
        FLUSH: (window.per_s("disk.flushes") or 0.0) * _FLUSH_S,
    }
    all_s = first_s + sum(taken_s.values())
    if (window.per_s(MEMORY_STALLED) or 0.0) >= STALLED:
        taken_s[MEMORY] = max(0.0, kernel_s - all_s)
    most = min(1.0, kernel_s / max(all_s, 1e-9))
    return {name: one_s * most / busy_s for name, one_s in taken_s.items()}


def working(seen: Seen) -> Draws:
    """Of session time: running, and wanting a CPU that the load itself uses."""
    use = host_use(seen.window)
    own = use.own_part if use else 1.0
    return np.asarray(seen.share(RUNNING) + seen.share(WANTS_CPU) * own)


def work_of(seen: Seen, what: str) -> Draws:
    """Of that, what goes where it is not asked for: in the midst of its waits, or the kernel's."""
    whole = working(seen)
    kernels = whole * asked(seen.window).get(what, 0.0)
    return np.minimum(whole, np.maximum(seen.inside(what), kernels))
