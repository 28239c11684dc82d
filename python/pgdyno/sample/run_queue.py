"""Tells a session that runs from one that wants a CPU and has none, by /proc/<pid>/schedstat.

The kernel counts how long a process ran and how long it was runnable without a CPU, both in ns.
A sample that finds a session without a wait event cannot see which of the two it is at that
moment; what it did since it was last asked for can be seen. Such samples are split between the
two in that ratio, session by session, and what does not make a whole sample is carried to the
session's next one: so that counts of samples add up to the kernel's own account.

Source: Linux, Documentation/scheduler/sched-stats.rst; needs CONFIG_SCHED_INFO.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

_MORE = 100  # processes that are remembered beside those of the last tick


@dataclass(slots=True)
class _Known:
    """A process as it was last seen."""

    run_ns: int
    wait_ns: int
    carried: float = 0.0  # of a sample, that is owed to waiting


def parse(text: str) -> tuple[int, int]:
    """Time on a CPU and time on a run queue, in ns."""
    run, wait, _slices = text.split()
    return int(run), int(wait)


class RunQueue:
    """Remembers processes from one sample to the next.

    Args:
        proc: Where the kernel shows its processes.
    """

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._known: dict[int, _Known] = {}

    def waits(self, pid: int) -> bool:
        """Whether this sample of a process that waits for no event is one without a CPU.

        The first of a process is none: nothing is known of what it did before.
        """
        try:
            run_ns, wait_ns = parse((self._proc / str(pid) / "schedstat").read_text())
        except (FileNotFoundError, ProcessLookupError):
            return False  # it ended since
        known = self._known.get(pid)
        if known is None or run_ns < known.run_ns:  # a new one, perhaps under an old number
            self._known[pid] = _Known(run_ns, wait_ns)
            return False
        ran, waited = run_ns - known.run_ns, wait_ns - known.wait_ns
        known.run_ns, known.wait_ns = run_ns, wait_ns
        if ran + waited > 0:
            known.carried += waited / (ran + waited)
        waits = known.carried >= 0.5  # half of a sample and more is rounded up
        known.carried -= waits
        return waits

    def forget_all_but(self, pids: set[int]) -> None:
        """Keep what is known of these processes, once that of many others has come together."""
        if len(self._known) > len(pids) + _MORE:
            self._known = {pid: known for pid, known in self._known.items() if pid in pids}


def is_told(pid: int, proc: Path = Path("/proc")) -> bool:
    """Whether this kernel tells it of a process."""
    try:
        parse((proc / str(pid) / "schedstat").read_text())
    except (OSError, ValueError):
        return False
    return True
