"""What a server's processes wait for in the kernel, asked 100 times a second, from outside.

perf with the software clock sees who is on a CPU. Who is not is seen here: by its state and the
kernel function in which it sleeps (`/proc/PID/stat`, `/proc/PID/wchan`, see proc(5)). Ticks come
with jitter, since a load may have a beat of its own, and late ones are left out, never made up.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from pgdyno.model.profile import KERNEL, UNKNOWN, Lack
from pgdyno.model.system_errors import reason
from pgdyno.profiler.perf_script import clean
from pgdyno.sample.process_roles import ServerProcesses

RATE_HZ = 100.0
RUNNING = "running, or waiting for a CPU"
_ROLES_S = 0.25  # how often is looked for new processes
_STATES = {
    "R": RUNNING,
    "S": "sleeping",
    "D": "waiting for a device (uninterruptible)",
    "T": "stopped", "t": "stopped",
    "I": "idle",
}  # fmt: skip
_ENDED = (FileNotFoundError, ProcessLookupError)
_BYTES = 1024


def parse_state(text: str) -> str:
    """The state of a process, in words, from its /proc/PID/stat; empty if it has ended."""
    letter = text.rpartition(") ")[2][:1]
    return "" if letter in ("Z", "X", "x", "") else _STATES.get(letter, letter)


@dataclass(slots=True)
class Tick:
    """What was met at one moment."""

    unix_ns: int
    met: list[tuple[str, str, str]]  # role, state, kernel function ("": none)


@dataclass(slots=True)
class _Watched:
    """A process and its files, held open: reading again is three times as cheap as opening."""

    role: str
    stat: int
    wchan: int

    def close(self) -> None:
        os.close(self.stat)
        os.close(self.wchan)


@dataclass(slots=True)
class WaitChannels:
    """Watches from `start` to `stop`, in a thread of its own."""

    postmaster: int
    proc: Path = Path("/proc")
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    unix_ns: Callable[[], int] = time.time_ns
    ticks: list[Tick] = field(default_factory=list)
    cpu: list[tuple[int, float]] = field(default_factory=list)  # unix ns, CPU s of the server
    roles: dict[int, str] = field(default_factory=dict)  # of all that were ever met
    late: int = 0  # ticks left out
    lack: Lack | None = None
    _processes: ServerProcesses | None = None
    _open: dict[int, _Watched] = field(default_factory=dict)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    @property
    def living(self) -> tuple[int, ...]:
        """The server's processes that were there when it was last looked."""
        return (self.postmaster, *self._open)

    def start(self) -> None:
        """Begin to watch."""
        self.look()
        self._thread = threading.Thread(target=self._loop, name="pgdyno waits", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End it."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        self.look()
        for watched in self._open.values():
            watched.close()
        self._open.clear()

    def _loop(self) -> None:
        due = looked = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            now = time.monotonic()
            if now - looked >= _ROLES_S:
                looked = now
                self.look()
            self.ticks.append(self.tick())
            due += self.rng.uniform(0.5, 1.5) / RATE_HZ
            behind = time.monotonic() - due
            if behind > 0:
                self.late += int(behind * RATE_HZ)
                due = time.monotonic()

    def look(self) -> None:
        """Find the server's processes, and read what CPU time they have used."""
        try:
            if self._processes is None:
                self._processes = ServerProcesses(self.proc, self.postmaster, threads=True)
            self._processes.look()
        except OSError as error:
            self.lack = Lack(f"The server's processes could not be listed: {reason(error)}.")
            return
        self.cpu.append((self.unix_ns(), self._processes.server_cpu_s))
        found = self._processes.living()
        self.roles.update(found)
        for pid, role in found.items():
            if pid not in self._open:
                self._hold(pid, role)

    def _hold(self, pid: int, role: str) -> None:
        folder = self.proc / str(pid)
        try:
            stat = os.open(folder / "stat", os.O_RDONLY | os.O_CLOEXEC)
        except _ENDED:
            return
        try:
            wchan = os.open(folder / "wchan", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            os.close(stat)
            return
        self._open[pid] = _Watched(role, stat, wchan)

    def tick(self) -> Tick:
        """Look once at each process that is known."""
        tick = Tick(self.unix_ns(), [])
        for pid, watched in list(self._open.items()):
            try:
                state = parse_state(os.pread(watched.stat, _BYTES, 0).decode(errors="replace"))
                channel = os.pread(watched.wchan, _BYTES, 0).decode(errors="replace")
            except ProcessLookupError:
                state = channel = ""
            except PermissionError as error:
                self.lack = Lack(
                    f"What processes wait for in the kernel could not be read: {reason(error)}.",
                    "Run pgdyno as the user that runs PostgreSQL, or as root.",
                )
                channel = "0"
            if not state:
                watched.close()
                del self._open[pid]
            elif state == RUNNING:
                tick.met.append((watched.role, state, ""))
            else:
                named = UNKNOWN if channel in ("0", "") else clean(channel)
                tick.met.append((watched.role, state, named))
        return tick


def stack_of(met: tuple[str, str, str]) -> list[tuple[str, str]]:
    """What was met as a stack of functions and modules, for a tree."""
    role, state, channel = met
    return [(role, ""), (state, ""), *([(channel, KERNEL)] if channel else [])]
