"""Whether perf is here, what the kernel lets us see by it, and how to get more.

Source: perf_event_open(2), the kernel's admin-guide/perf-security, and Debian's further level 3.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from pgdyno.model.profile import Lack
from pgdyno.profiler.kernel_symbols import KernelSymbols

_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_STATUS = Path("/proc/self/status")
_CAP_SYS_ADMIN, _CAP_PERFMON = 21, 38
_HOST_MAX, _KERNEL_MAX, _OWN_MAX = 0, 1, 2  # levels up to which users without rights may do so
_NOT_HERE = Lack(
    "There is no program perf on PATH, so functions were not seen.",
    "Install it: `apt-get install linux-perf` (Debian), `linux-tools-generic` (Ubuntu) or `perf`"
    " (Fedora).",
)

_NO_ADDRESSES = Lack(
    "The kernel hides its addresses, so that its functions have no names.",
    "Until the next boot: `sudo sysctl kernel.kptr_restrict=0`; or run pgdyno as root.",
)


@dataclass(frozen=True, slots=True)
class Rights:
    """What may be sampled."""

    own: bool  # processes of our user, or all of them where we have the capability
    kernel: bool  # what the kernel does for them
    host: bool  # the kernel's own threads
    lacks: tuple[Lack, ...] = ()

    @property
    def event(self) -> str:
        """The software clock, as perf wants it: it needs no counter of the processor."""
        return "cpu-clock" if self.kernel else "cpu-clock:u"


def rights_of(paranoid: int | None, capabilities: int) -> Rights:
    """What the kernel allows.

    Args:
        paranoid: The value of kernel.perf_event_paranoid; None: the kernel has no perf events.
        capabilities: Effective ones of this process, as /proc/self/status has them.
    """
    if paranoid is None:
        return Rights(False, False, False, (Lack("This kernel has no perf events."),))
    if capabilities >> _CAP_SYS_ADMIN & 1 or capabilities >> _CAP_PERFMON & 1:
        return Rights(own=True, kernel=True, host=True)
    level = f"kernel.perf_event_paranoid is {paranoid}"
    if paranoid > _OWN_MAX:
        fact = f"{level}, so that functions are seen by nobody without CAP_PERFMON."
        return Rights(False, False, False, (Lack(fact, _lower(_KERNEL_MAX)),))
    if paranoid > _KERNEL_MAX:
        fact = f"{level}, so that the kernel's share is not seen without CAP_PERFMON."
        return Rights(True, False, False, (Lack(fact, _lower(_KERNEL_MAX)),))
    if paranoid > _HOST_MAX:
        fact = f"{level}, so that the kernel's own threads are not seen without CAP_PERFMON."
        return Rights(True, True, False, (Lack(fact, _lower(_HOST_MAX)),))
    return Rights(own=True, kernel=True, host=True)


def _lower(level: int) -> str:
    return (
        f"Until the next boot: `sudo sysctl kernel.perf_event_paranoid={level}`; or run pgdyno as"
        " root, in a container with `--cap-add PERFMON`."
    )


def rights_here() -> Rights:
    """What the kernel allows this process."""
    try:
        paranoid = int(_PARANOID.read_text())
    except OSError:
        paranoid = None
    found = re.search(r"^CapEff:\s+([0-9a-f]+)$", _STATUS.read_text(), re.MULTILINE)
    return rights_of(paranoid, int(found[1], 16) if found else 0)


def addresses_lack(rights: Rights, kernel: KernelSymbols) -> Lack | None:
    """What is said where the kernel is sampled, and does not tell us where its functions lie."""
    return _NO_ADDRESSES if rights.kernel and not kernel.are_told else None


def find_perf() -> Path | Lack:
    """The program on PATH, or how to get it."""
    found = shutil.which("perf")
    return _NOT_HERE if found is None else Path(os.path.abspath(found))
