"""Tells a session that runs from one that wants a CPU and has none, by /proc/<pid>/schedstat.

The kernel counts how long a process ran and how long it was runnable without a CPU. A sample that
finds a session without a wait event cannot see which of the two it is at that moment; what it did
since it was last asked for can be seen. Such samples are split between the two in that ratio,
session by session, and what does not make a whole sample is carried to the session's next one: so
that counts of samples add up to the kernel's own account.

The kernel counts a wait once it is over. Who did neither since it was last asked, and is runnable,
waits all the while, as where a control group holds it back for longer than samples are apart: that
is taken for a wait at once, and put right by the kernel's count when it comes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pgdyno.sample.kernel_file import KernelFile
from pgdyno.sample.process_files import descriptors_to_keep, parse_schedstat

_MORE = 100  # processes that are remembered beside those of the last tick


@dataclass(slots=True)
class _Known:
    """A process as it was last seen."""

    ran_s: float
    waited_s: float
    file: KernelFile | None  # None: too many are open
    carried: float = 0.0  # of a sample, that is owed to waiting
    ahead: int = 0  # samples taken for waits that the kernel has not counted yet


class RunQueue:
    """Remembers processes from one sample to the next.

    Args:
        proc: Where the kernel shows its processes.
        keep: How many of their files may stay open; None: a part of those that we may open.
    """

    def __init__(self, proc: Path = Path("/proc"), keep: int | None = None) -> None:
        self._proc = proc
        self._keep = descriptors_to_keep() if keep is None else keep
        self._known: dict[int, _Known] = {}

    def waits(self, pid: int) -> bool:
        """Whether this sample of a process that waits for no event is one without a CPU.

        The first of a process is none: nothing is known of what it did before.
        """
        known = self._known.get(pid)
        try:
            if known is None:
                self._meet(pid)
                return False
            ran_s, waited_s = self._read(pid, known.file)
        except OSError:  # it ended since; its number may be another's by now
            self._known.pop(pid, None)
            return False
        ran, waited = ran_s - known.ran_s, waited_s - known.waited_s
        known.ran_s, known.waited_s = ran_s, waited_s
        if ran < 0:  # a new one under an old number
            known.carried, known.ahead = 0.0, 0
            return False
        if ran + waited > 0:
            known.carried += waited / (ran + waited) * (1 + known.ahead) - known.ahead
            known.ahead = 0
        elif self._is_runnable(pid):
            known.carried += 1
            known.ahead += 1
        waits = known.carried >= 0.5  # half of a sample and more is rounded up
        known.carried -= waits
        return waits

    def forget_all_but(self, pids: set[int]) -> None:
        """Keep what is known of these processes, once that of many others has come together."""
        if len(self._known) > len(pids) + _MORE:
            self._known = {pid: known for pid, known in self._known.items() if pid in pids}

    def _meet(self, pid: int) -> None:
        file = KernelFile(self._path(pid))
        kept = file if len(self._known) < self._keep else None
        self._known[pid] = _Known(*parse_schedstat(file.line()), kept)

    def _read(self, pid: int, kept: KernelFile | None) -> tuple[float, float]:
        return parse_schedstat((kept or KernelFile(self._path(pid))).line())

    def _is_runnable(self, pid: int) -> bool:
        """Who is not, and waits for no event, waits for what no event is told of."""
        try:
            data = (self._proc / str(pid) / "stat").read_bytes()
        except OSError:
            return False
        return data.rpartition(b")")[2].split()[:1] == [b"R"]

    def _path(self, pid: int) -> Path:
        return self._proc / str(pid) / "schedstat"


def is_told(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether this kernel tells it of a process."""
    try:
        return bool(KernelFile(proc / str(pid) / "schedstat").line())
    except OSError:
        return False
