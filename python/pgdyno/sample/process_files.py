"""What one process or thread has used so far, from its files in /proc.

Sources: proc_pid_stat(5), proc_pid_io(5); Linux, Documentation/scheduler/sched-stats.rst. Times are
in ticks or ns there, in seconds here. `schedstat` tells of a process's first thread alone. That is
all of a server process, unless io_uring gives it workers of the kernel: then `stat` is read, too,
and the greater of both is its CPU time.
"""

from __future__ import annotations

import resource
from collections.abc import Collection
from operator import add
from pathlib import Path
from typing import NamedTuple

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.proc_stat import TICKS_PER_S

_SHARE_OF_DESCRIPTORS = 4  # of those that we may open, a part that is ours to keep open


class Stat(NamedTuple):
    """What `stat` tells of a process."""

    own_s: float  # CPU
    reaped_s: float  # CPU of children that have ended and were waited for
    start: int  # since boot, in ticks: with its number it is a process's name


class Usage(NamedTuple):
    """What a process has used since it began."""

    cpu_s: float = 0.0
    wait_cpu_s: float = 0.0  # it could have run, and had no CPU
    read_bytes: float = 0  # from devices
    write_bytes: float = 0  # to devices, when the page was dirtied

    def plus(self, other: Usage) -> Usage:
        """Both together."""
        return Usage(*map(add, self, other))

    def beyond(self, other: Usage) -> Usage:
        """How much this is more than the other; nothing where it is not."""
        return Usage(*(max(0.0, one - another) for one, another in zip(self, other, strict=True)))

    def at_least(self, other: Usage) -> Usage:
        """The greater of each."""
        return Usage(*map(max, self, other))


def parse_stat(data: bytes) -> Stat:
    """The fields of `stat` that are used; the name in parentheses may hold anything."""
    fields = data.rpartition(b")")[2].split()
    user, system, reaped_user, reaped_system = (int(field) for field in fields[11:15])
    return Stat(
        (user + system) / TICKS_PER_S,
        (reaped_user + reaped_system) / TICKS_PER_S,
        int(fields[19]),
    )


def parse_schedstat(data: bytes) -> tuple[float, float]:
    """Seconds on a CPU, and seconds waiting for one."""
    ran, waited = data.split()[:2]
    return int(ran) / 1e9, int(waited) / 1e9


def parse_io(data: bytes) -> tuple[int, int]:
    """Bytes read from and written to devices."""
    words = data.split()
    return int(words[words.index(b"read_bytes:") + 1]), int(words[words.index(b"write_bytes:") + 1])


def descriptors_to_keep() -> int:
    """How many files may stay open without a danger for what else needs descriptors."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft // _SHARE_OF_DESCRIPTORS if soft > 0 else 1 << 16


class ProcessFiles:
    """The files of one process, which is not another one of its number."""

    def __init__(self, folder: Path, names: Collection[str], *, keep: bool) -> None:
        """Open its files.

        Args:
            folder: Of the process in /proc.
            names: Of its files that are read, of `stat`, `schedstat` and `io`.
            keep: They stay open, and are those of this process therefore; else `stat` tells.

        Raises:
            OSError: It is gone, or not ours to read.
        """
        named = names if keep else {*names, "stat"}
        self._paths = {name: str(folder / name) for name in named}
        self._open = {name: KernelFile(path) for name, path in self._paths.items()} if keep else {}
        self._start = None if keep else parse_stat(self._line("stat")).start

    def usage(self) -> Usage:
        """What it has used.

        Raises:
            OSError: It is gone.
        """
        ran_s = waited_s = 0.0
        if "schedstat" in self._paths:
            ran_s, waited_s = parse_schedstat(self._line("schedstat"))
        if "stat" in self._paths:
            stat = parse_stat(self._line("stat"))
            if self._start not in (None, stat.start):
                raise ProcessLookupError("another process has its number")
            ran_s = max(ran_s, stat.own_s)
        io = parse_io(self._line("io")) if "io" in self._paths else (0, 0)
        return Usage(ran_s, waited_s, *io)

    def _line(self, name: str) -> bytes:
        if (file := self._open.get(name)) is not None:
            return file.line()
        file = KernelFile(self._paths[name])
        try:
            return file.line()
        finally:
            file.close()
