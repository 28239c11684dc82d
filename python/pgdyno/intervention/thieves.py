"""CPU time made dearer on the whole machine: a thief a CPU (see `thief`), started and told."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from pgdyno.model.errors import TargetError
from pgdyno.model.proof import DEARER, Dose
from pgdyno.shell import Process, start

_SHARE = DEARER / (1 + DEARER)  # of each CPU: then all takes 1 + DEARER as long


@dataclass(frozen=True, slots=True)
class Thieves:
    """They take from all CPUs, or rest."""

    processes: tuple[Process, ...]

    def turn(self, on: bool) -> None:
        """See `Intervention`."""
        self._ask("take" if on else "rest")

    def dose(self) -> Dose | None:
        """See `Intervention`: all CPUs' time, of which some was taken."""
        answers = self._ask("tell")
        taken_ns = sum(taken for taken, _ in answers)
        return Dose(0.0, sum(elapsed for _, elapsed in answers) - taken_ns, taken_ns)

    def _ask(self, word: str) -> list[tuple[float, float]]:
        for process in self.processes:
            try:
                process.stdin.write(f"{word}\n")
                process.stdin.flush()
            except BrokenPipeError as error:
                raise _ended(process) from error
        return [_answer(process) for process in self.processes]


def refusal() -> str | None:
    """Why CPU time cannot be taken here; None: it can."""
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except OSError:
        needs = "Taking CPU time from everybody needs a real-time priority"
        if os.geteuid() == 0:
            return (
                f"{needs}, which root may not have here: the container lacks CAP_SYS_NICE, or"
                " cpu.rt_runtime_us of its CPU group (cgroup v1) is 0."
            )
        return (
            f"{needs}: run as root, or give the user an rtprio of 1 in /etc/security/limits.conf."
        )
    os.sched_setscheduler(0, before, os.sched_param(0))
    return None


@contextmanager
def thieves() -> Iterator[Thieves]:
    """A thief on each CPU that this process may use; they rest at first.

    Raises:
        TargetError: One cannot be started.
    """
    processes: list[Process] = []
    try:
        for cpu in sorted(os.sched_getaffinity(0)):
            args = [sys.executable, "-m", "pgdyno.intervention.thief", str(cpu), str(_SHARE)]
            processes.append(start(args, pipes=True, dies_with_us=signal.SIGKILL))
        for process in processes:
            _answer(process)
        yield Thieves(tuple(processes))
    finally:
        for process in processes:
            process.kill()
            with suppress(BrokenPipeError):  # it ended before it was told all
                process.close_pipes()


def _answer(process: Process) -> tuple[float, float]:
    line = process.stdout.readline()
    if not line:
        raise _ended(process)
    told = json.loads(line)
    return float(told["taken_ns"]), float(told["elapsed_ns"])


def _ended(process: Process) -> TargetError:
    return TargetError(f"what takes CPU time ended with code {process.wait(5)}")
