"""The host's memory by use, huge pages, what waits to be written, and what reclaiming it costs.

Sources: proc_meminfo(5); proc_vmstat(5) and Linux, mm/vmstat.c. Kernels tell more and more of it;
what this one does not tell has no column. Cost: 190 µs beside a full load.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_KIB = 1024
_LEVELS = {
    "MemTotal": "memory.total_bytes",
    "MemFree": "memory.free_bytes",
    "MemAvailable": "memory.available_bytes",
    "Buffers": "memory.buffers_bytes",
    "Cached": "memory.cached_bytes",  # the page cache, shared memory included
    "Dirty": "memory.dirty_bytes",
    "Writeback": "memory.writeback_bytes",
    "AnonPages": "memory.anonymous_bytes",
    "Shmem": "memory.shared_bytes",
    "Slab": "memory.slab_bytes",
    "PageTables": "memory.page_tables_bytes",
    "SwapTotal": "memory.swap_total_bytes",
    "SwapFree": "memory.swap_free_bytes",
    "AnonHugePages": "memory.transparent_huge_bytes",
    "ShmemHugePages": "memory.shared_huge_bytes",
}
_HUGE = {  # counted in pages of the default size
    "HugePages_Total": "memory.huge_total_bytes",
    "HugePages_Free": "memory.huge_free_bytes",
    "HugePages_Rsvd": "memory.huge_reserved_bytes",
}
_COUNTERS = {
    "pgfault": "vm.faults",
    "pgmajfault": "vm.major_faults",  # that waited for a device
    "pswpin": "vm.swap_in_pages",
    "pswpout": "vm.swap_out_pages",
    "pgscan_direct": "vm.direct_scanned_pages",  # by tasks that needed memory themselves
    "pgsteal_direct": "vm.direct_reclaimed_pages",
    "pgscan_kswapd": "vm.background_scanned_pages",
    "workingset_refault": "vm.refaulted_pages",  # up to 5.8: of files and others together
    "workingset_refault_file": "vm.refaulted_pages",  # that were thrown away too early
    "nr_dirtied": "vm.dirtied_pages",
    "nr_written": "vm.written_pages",
    "compact_stall": "vm.compaction_stalls",
    "thp_fault_alloc": "vm.huge_faults",
    "thp_fault_fallback": "vm.huge_fault_failures",
    "oom_kill": "vm.oom_kills",
}
_STALLS = "allocstall"  # one for each zone since 4.10
_LIMITS = {
    "nr_dirty_threshold": "memory.dirty_limit_bytes",  # from here on who writes has to wait
    "nr_dirty_background_threshold": "memory.dirty_background_bytes",
}


def parse_meminfo(text: str) -> Row:
    """Levels in bytes, e.g. `memory.dirty_bytes`."""
    row: Row = {}
    pages: Row = {}
    huge_bytes = 0
    for line in text.splitlines():
        name, _, rest = line.partition(":")
        if column := _LEVELS.get(name):
            row[column] = int(rest.split()[0]) * _KIB
        elif column := _HUGE.get(name):
            pages[column] = int(rest)
        elif name == "Hugepagesize":
            huge_bytes = int(rest.split()[0]) * _KIB
    if huge_bytes:
        row |= {name: count * huge_bytes for name, count in pages.items()}
    return row


def parse_vmstat(text: str) -> Row:
    """Counters since boot, and the levels of dirty memory at which writing begins, in bytes."""
    words = text.split()
    found = dict(zip(words[::2], words[1::2], strict=True))
    row: Row = {column: int(found[name]) for name, column in _COUNTERS.items() if name in found}
    row |= {c: int(found[name]) * _PAGE_BYTES for name, c in _LIMITS.items() if name in found}
    if stalls := [int(value) for name, value in found.items() if name.startswith(_STALLS)]:
        row["vm.allocation_stalls"] = sum(stalls)
    return row


def columns_of(names: Iterable[str]) -> tuple[Column, ...]:
    """Levels are in bytes, counters are numbers."""
    return tuple(
        Column(name, "B", "gauge") if name.startswith("memory.") else Column(name, "1")
        for name in names
    )


def sampler(_subject: Subject, proc: Path = Path("/proc")) -> Sampler:
    """Always there."""
    meminfo, vmstat = KernelFile(proc / "meminfo"), KernelFile(proc / "vmstat")

    def take() -> Row:
        return parse_meminfo(meminfo.text()) | parse_vmstat(vmstat.text())

    return Sampler("memory", columns_of(take()), take)
