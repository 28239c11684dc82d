"""Seconds in which tasks of the host waited for CPU, memory or I/O: pressure stall information.

`some`: at least one task waited; `full`: all that had work did, at once, of which there is no such
thing for the CPU of a whole host (the kernel tells a zero). Linux 4.20 and up, where it is built in
and switched on; interrupts (`irq`) are told since 6.1. Cost: 40 µs beside a full load.
"""

from __future__ import annotations

from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.pressure_text import parse_pressure
from pgdyno.sample.sampler import Column, Missing, Row, Sampler, Subject

_FOLDER = Path("/proc/pressure")
_RESOURCES = ("cpu", "memory", "io", "irq")
_UNDEFINED = "psi.cpu.full_s"


def sampler(_subject: Subject, folder: Path = _FOLDER) -> Sampler | Missing:
    """Of the host; missing where the kernel does not tell."""
    files: dict[str, KernelFile] = {}
    for resource in _RESOURCES:
        try:
            file = KernelFile(folder / resource)
            file.text()
        except OSError:  # not built in, or switched off: then it can be opened, but not read
            continue
        files[resource] = file

    def take() -> Row:
        row: Row = {}
        for resource, file in files.items():
            row |= parse_pressure(resource, file.text())
        row.pop(_UNDEFINED, None)
        return row

    if not (columns := tuple(Column(name, "s") for name in take())):
        return Missing(
            "pressure of CPU, memory and I/O",
            "the kernel reports no pressure stall information",
            "Boot it with psi=1, if it is 4.20 or later.",
        )
    return Sampler("pressure", columns, take)
