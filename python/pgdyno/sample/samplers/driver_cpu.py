"""The processes of this host that make the load: CPU of all threads, waits for one, their number.

Before it runs it has used nothing; what a thread used until it was last seen stays when it ends.
Where all had ended before any of them was seen, nothing is known, and there is no sample.
Source: Linux, Documentation/scheduler/sched-stats.rst. Cost: 110 µs beside a full load.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import descriptors_to_keep, parse_schedstat
from pgdyno.sample.sampler import Column, Missing, Row, Sampler, Subject

_COLUMNS = (
    Column("driver.cpu_s", "s"),
    Column("driver.wait_cpu_s", "s"),
    Column("driver.threads", "1", "gauge"),
)


class _Threads:
    """Of the driver, as they come and go.

    Args:
        proc: Where the kernel shows its processes.
        keep: How many of their files may stay open; None: a part of those that we may open.
    """

    def __init__(self, proc: Path, keep: int | None = None) -> None:
        self._proc = proc
        self._keep = descriptors_to_keep() if keep is None else keep
        self._files: dict[str, KernelFile | str] = {}  # a path: too many are open
        self._used: dict[str, tuple[float, float]] = {}  # by those that are there
        self._ended = (0.0, 0.0)

    def look(self, pids: Sequence[int]) -> Row:
        """What they used so far."""
        for name, file in list(self._files.items()):
            try:
                self._used[name] = parse_schedstat(_line(file))
            except OSError:
                self._end(name)
        for pid in pids:
            self._meet(f"{self._proc}/{pid}/task")
        if not self._used and self._ended == (0.0, 0.0) and pids:
            return {}
        ran, waited = map(sum, zip(self._ended, *self._used.values(), strict=True))
        values = (ran, waited, len(self._files))
        return {column.name: value for column, value in zip(_COLUMNS, values, strict=True)}

    def _meet(self, folder: str) -> None:
        try:
            for name in os.listdir(folder):
                if name not in self._files:
                    path = f"{folder}/{name}/schedstat"
                    file = KernelFile(path)
                    self._used[name] = parse_schedstat(file.line())
                    self._files[name] = file if len(self._files) < self._keep else path
        except OSError:
            return  # the process, or a thread, has ended

    def _end(self, name: str) -> None:
        del self._files[name]
        used = self._used.pop(name)
        self._ended = (self._ended[0] + used[0], self._ended[1] + used[1])


def _line(file: KernelFile | str) -> bytes:
    return (KernelFile(file) if isinstance(file, str) else file).line()


def sampler(subject: Subject, proc: Path = Path("/proc")) -> Sampler | Missing | None:
    """None where no server is driven, or none from here; missing without schedstat."""
    if subject.session is None or (pids := subject.driver_pids) is None:
        return None
    if not (proc / "self" / "schedstat").exists():
        return Missing("CPU of the driver while it runs", "the kernel keeps no /proc/PID/schedstat",
                       "Use a kernel with CONFIG_SCHED_INFO.")  # fmt: skip
    threads = _Threads(proc)
    return Sampler("driver cpu", _COLUMNS, lambda: threads.look(pids()))
