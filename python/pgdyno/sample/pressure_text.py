"""Pressure stall information, as the kernel tells it of the host and of control groups.

Source: Linux, Documentation/accounting/psi.rst. Totals are in µs there, in seconds here.
"""

from __future__ import annotations

from pgdyno.sample.sampler import Row


def parse_pressure(resource: str, text: str) -> Row:
    """Seconds in which tasks waited, e.g. `psi.cpu.some_s`; a kernel may tell no `full`.

    Args:
        resource: `cpu`, `memory`, `io` or `irq`.
        text: Of its file.
    """
    row: Row = {}
    for line in text.splitlines():
        kind, _, rest = line.partition(" ")
        _, found, total = rest.rpartition("total=")
        if kind in ("some", "full") and found:
            row[f"psi.{resource}.{kind}_s"] = int(total) / 1e6
    return row
