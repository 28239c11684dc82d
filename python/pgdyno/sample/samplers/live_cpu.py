"""CPU seconds of the process that shows this run to others; apart from all else of pgdyno."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import parse_stat
from pgdyno.sample.sampler import Column, Sampler, Subject

WORKER = b"pgdyno.live.worker"
_COLUMN = Column("live.cpu_s", "s")


def sampler(_subject: Subject) -> Sampler | None:
    """None where nobody is shown anything."""
    proc = Path("/proc")
    worker = find(proc, os.getpid())
    if worker is None:
        return None
    stat = KernelFile(proc / str(worker) / "stat")  # another with its number has another file
    return Sampler("live cpu", (_COLUMN,), lambda: {_COLUMN.name: cpu_s(stat)})


def find(proc: Path, parent: int) -> int | None:
    """The child that shows the run, if there is one."""
    for task in (proc / str(parent) / "task").iterdir():
        try:
            children = (task / "children").read_text().split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # a thread that has ended since
        for child in children:
            if _is_worker(proc / child):
                return int(child)
    return None


def _is_worker(process: Path) -> bool:
    try:
        return WORKER in (process / "cmdline").read_bytes().split(b"\0")
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended since


def cpu_s(stat: KernelFile) -> float:
    """CPU seconds that a process took since it began, by its file.

    Raises:
        OSError: It has ended.
    """
    return parse_stat(stat.line()).own_s
