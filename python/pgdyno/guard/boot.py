"""This life of the machine's kernel: what names it, and how long it lasts already."""

from __future__ import annotations

import time
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """The name of this life of the kernel: another one after every restart of the machine."""
    return _BOOT_ID.read_text().strip()


def since_boot_s() -> float:
    """Seconds since the machine began: the same for all processes, whatever a clock is set to."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
