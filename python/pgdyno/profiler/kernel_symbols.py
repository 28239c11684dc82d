"""Names of the kernel's functions, from /proc/kallsyms.

perf reads a profile with the rights of who owns the processes in it, and these may not see the
kernel's addresses. So its names are looked up here, by addresses that perf tells as numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from pgdyno.model.profile import UNKNOWN

_CODE = "tTwW"  # kinds of symbols that are functions, see nm(1)
_KERNEL_BIT = 63  # set in all addresses of the kernel on 64-bit machines


def is_kernel(address: int) -> bool:
    """Whether an address is one of the kernel's."""
    return bool(address >> _KERNEL_BIT & 1)


class KernelSymbols:
    """Functions of the kernel by their addresses."""

    def __init__(self, lines: Iterable[str]) -> None:
        found = []
        for line in lines:
            words = line.split(maxsplit=3)
            if len(words) >= 3 and words[1] in _CODE:
                found.append((int(words[0], 16), words[2]))
        found.sort()
        self._starts = [start for start, _ in found]
        self._names = [name for _, name in found]

    @classmethod
    def of_host(cls, path: Path = Path("/proc/kallsyms")) -> KernelSymbols:
        """Those of the running kernel; none where it does not tell."""
        try:
            with path.open(encoding="ascii", errors="replace") as lines:
                return cls(lines)
        except OSError:
            return cls(())

    @property
    def are_told(self) -> bool:
        """Whether the kernel shows its addresses to us; else all of them are 0."""
        return bool(self._starts) and self._starts[-1] > 0

    def name(self, address: int) -> str:
        """The function at an address."""
        if not self.are_told:
            return UNKNOWN
        index = bisect_right(self._starts, address) - 1
        return self._names[index] if index >= 0 else UNKNOWN
