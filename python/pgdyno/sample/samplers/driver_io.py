"""The processes of this host that make the load: bytes that they read from disks and write there.

What they say to a server over a socket is not in it: this is what they take of the disks beside
the server, e.g. pgbench for its log. Before it runs it has used nothing; what a process had used
when it was last seen stays when it ends; of one that ended before it was ever seen nothing is
known, and there is no sample from then on. Source: proc_pid_io(5). A kernel has it with
CONFIG_TASK_IO_ACCOUNTING. Cost: 10 µs a process.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import parse_io
from pgdyno.sample.sampler import Column, Missing, Row, Sampler, Subject

_COLUMNS = (Column("driver.read_bytes", "B"), Column("driver.write_bytes", "B"))


class _Processes:
    """Of the driver, as they come and go."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._files: dict[int, KernelFile | None] = {}  # None: it has ended
        self._used: dict[int, tuple[int, int]] = {}

    def look(self, pids: Sequence[int]) -> Row:
        """What they used so far.

        Raises:
            PermissionError: Of one of them it is not ours to know.
        """
        for pid in pids:
            if pid not in self._files:
                self._files[pid] = self._met(pid)
        for pid, file in self._files.items():
            if file is not None:
                self._read(pid, file)
        if self._files.keys() != self._used.keys():
            return {}
        sums = map(sum, zip((0, 0), *self._used.values(), strict=True))
        return {column.name: float(value) for column, value in zip(_COLUMNS, sums, strict=True)}

    def _met(self, pid: int) -> KernelFile | None:
        try:
            return KernelFile(self._proc / str(pid) / "io")
        except PermissionError:
            raise self._refused(pid) from None
        except OSError:
            return None  # it was gone before it was seen

    def _read(self, pid: int, file: KernelFile) -> None:
        try:
            self._used[pid] = parse_io(file.line())
        except PermissionError:
            raise self._refused(pid) from None
        except OSError:
            file.close()
            self._files[pid] = None

    def _refused(self, pid: int) -> PermissionError:
        return PermissionError(f"{self._proc}/{pid}/io is not ours to read")


def sampler(subject: Subject, proc: Path = Path("/proc")) -> Sampler | Missing | None:
    """None where no server is driven, or none from here; missing where the kernel has none."""
    if subject.session is None or (pids := subject.driver_pids) is None:
        return None
    if not (proc / "self" / "io").exists():
        return Missing("bytes read and written by the driver", "the kernel keeps no /proc/PID/io",
                       "Use a kernel with CONFIG_TASK_IO_ACCOUNTING.")  # fmt: skip
    processes = _Processes(proc)
    return Sampler("driver io", _COLUMNS, lambda: processes.look(pids()))
