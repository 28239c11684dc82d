"""CPU seconds of the host by state and by CPU, what runs and waits, switches and interrupts.

Source: proc_stat(5), all kernels. Cost: 70 µs beside a full load on two CPUs.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.proc_stat import GAUGES, parse_host
from pgdyno.sample.sampler import Column, Sampler, Subject

_PATH = Path("/proc/stat")


def sampler(_subject: Subject, path: Path = _PATH) -> Sampler:
    """Always there. A CPU that is switched on later has no column, one that is off no samples."""
    file = KernelFile(path)
    columns = tuple(_column(name) for name in parse_host(file.text()))
    return Sampler("host cpu", columns, lambda: parse_host(file.text()))


def _column(name: str) -> Column:
    unit = "s" if name.endswith("_s") else "1"
    return Column(name, unit, "gauge" if name in GAUGES.values() else "counter")
