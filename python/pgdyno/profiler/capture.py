"""One profile: everything that looks on, begun and ended together, made into one record."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from pgdyno.folders import Folder, owner_of, scratch
from pgdyno.model.counters import growth
from pgdyno.model.errors import PgdynoError
from pgdyno.model.profile import (
    DRIVER,
    KERNEL_THREADS,
    SERVER,
    Lack,
    Profile,
    Quality,
    Stacks,
    Unwinding,
)  # fmt: skip
from pgdyno.model.run import Series
from pgdyno.profiler.kernel_symbols import KernelSymbols
from pgdyno.profiler.perf import Recording, RecordingSpec, rate_hz, version
from pgdyno.profiler.perf_script import Account, Folded, Script, fold, read_samples
from pgdyno.profiler.rights import Rights, addresses_lack, find_perf, rights_here
from pgdyno.profiler.wait_channels import WaitChannels, stack_of
from pgdyno.sample.process_roles import OTHER
from pgdyno.shell import OsUser, postgres_user

_NS = 1_000_000_000
_ROOM_BYTES = 1 << 30
_ROOM_PARTS = 6  # of what is free, each recording takes one at most
_KTHREADD = 2  # the parent of the kernel's own threads
_IDLE = 0
_NOT_OURS = Lack(
    "The server is not pgdyno's own, so that its functions were not seen.",
    'Measure an installation on this machine: `kind = "installed"` of the plan\'s target.',
)


@dataclass(frozen=True, slots=True)
class Subject:
    """Whom a profile is of."""

    postmaster: int | None  # None: the server is not ours
    user: OsUser | None  # who runs the server
    unwinding: Unwinding  # what works for the server's program


@dataclass(slots=True)
class Capture:
    """A profile under way; `begin` once the load runs, `end` after it, in a `with`."""

    subject: Subject
    seconds: int
    lacks: list[Lack] = field(default_factory=list)
    _recordings: list[Recording] = field(default_factory=list)
    _waits: WaitChannels | None = None
    _driver: int | None = None
    _tool: str = ""
    _hz: int = 0
    _kernel: KernelSymbols = field(default_factory=lambda: KernelSymbols(()))
    _files: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> Capture:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._files.close()

    @property
    def has_begun(self) -> bool:
        """Whether anything looks on."""
        return self._waits is not None or self._hz > 0

    def begin(self, driver: int | None) -> None:
        """Begin to look at the server, and at the driver of this number, once it has one."""
        self._hz = rate_hz(os.cpu_count() or 1, self.seconds)
        self._driver = driver
        if self.subject.postmaster is None:
            self.lacks.append(_NOT_OURS)
        else:
            self._waits = WaitChannels(self.subject.postmaster)
            self._waits.start()
        perf, rights = find_perf(), rights_here()
        if isinstance(perf, Lack):
            self.lacks.append(perf)
            return
        self.lacks += rights.lacks
        try:
            self._tool = version(perf)
            if rights.own:
                self._kernel = KernelSymbols.of_host()
                if (hidden := addresses_lack(rights, self._kernel)) is not None:
                    self.lacks.append(hidden)
                self._record(perf, rights)
        except PgdynoError as error:
            self.lacks.append(_unseen(error))

    def _record(self, perf: Path, rights: Rights) -> None:
        above = _recordings_folder()
        folder = self._files.enter_context(scratch(above, "pgdyno-profile-"))
        room = shutil.disk_usage(above).free // _ROOM_PARTS
        us = postgres_user() if os.geteuid() else OsUser("root", 0, os.getegid())
        server_user = self.subject.user or us
        _open_to(folder, server_user)
        wanted: list[tuple[Callable[[], RecordingSpec], OsUser]] = []
        if self._waits is not None:
            wanted.append((partial(self._server, rights.event, room), server_user))
        if self._driver is not None:
            uid = os.stat(f"/proc/{self._driver}").st_uid
            reader = server_user if uid == server_user.uid else us  # as who runs pgbench
            driver = RecordingSpec(DRIVER, rights.event, (self._driver,), "dwarf", room)
            wanted.append((lambda: driver, reader))
        if rights.host:
            # The kernel's side alone: root's perf must not read the programs of strangers.
            host = RecordingSpec(KERNEL_THREADS, "cpu-clock:k", (), "fp", room)
            wanted.append((lambda: host, us))
        for what, reader in wanted:
            recording = Recording.begun(perf, what, self._hz, folder, reader)
            self._recordings.append(recording)

    def _server(self, event: str, room: int) -> RecordingSpec:
        assert self._waits is not None
        self._waits.look()
        return RecordingSpec(SERVER, event, self._waits.living, self.subject.unwinding, room)

    def stop(self) -> None:
        """Look on no longer; a second time does nothing."""
        for recording in self._recordings:
            recording.stop()
        if self._waits is not None:
            self._waits.stop()

    def end(self, window_ns: tuple[int, int], transactions: Sequence[float]) -> Profile:
        """The profile of a window. Call it while the server's program is still in its place.

        Args:
            window_ns: Begin and end on the clock of the day.
            transactions: That ended in each whole second of it.
        """
        self.stop()
        seconds = len(transactions)
        begin_ns = window_ns[0] - (time.time_ns() - time.monotonic_ns())
        folded, qualities = Folded(seconds), []
        for recording in self._recordings:
            try:
                qualities.append(self._fold(recording, folded, begin_ns, window_ns))
            except PgdynoError as error:
                self.lacks.append(_unseen(error))
        return Profile(
            seconds=seconds,
            transactions=tuple(transactions),
            cpu=folded.stacks(self._hz) if qualities else None,
            waiting=self._waiting(seconds, window_ns[0]),
            unwinding=self.subject.unwinding,
            tool=self._tool,
            quality=tuple(qualities),
            lacks=tuple(dict.fromkeys(self.lacks)),
        )

    def _fold(
        self, recording: Recording, folded: Folded, begin_ns: int, window_ns: tuple[int, int]
    ) -> Quality:
        script, account = Script(), Account(recording.who)
        samples = read_samples(recording.read().splitlines(), script, self._kernel)
        roots = {SERVER: self._server_root, DRIVER: _driver_root, KERNEL_THREADS: self._thread_root}
        fold(samples, folded, account, begin_ns, roots[recording.who])
        cpu = self._waits.cpu if self._waits and recording.who == SERVER else []
        return account.quality(script.lost, growth(_cpu_s(cpu), window_ns))

    def _server_root(self, pid: int) -> str:
        assert self._waits is not None
        return self._waits.roles.get(pid, OTHER)

    def _thread_root(self, pid: int) -> str | None:
        """The kernel's own threads; what it does for programs is told with these."""
        if pid in (_IDLE, -1):
            return None
        try:
            status = Path(f"/proc/{pid}/stat").read_text()
        except (FileNotFoundError, ProcessLookupError):
            return None
        parent = int(status.rpartition(")")[2].split()[1])
        return KERNEL_THREADS if _KTHREADD in (parent, pid) else None

    def _waiting(self, seconds: int, begin_ns: int) -> Stacks | None:
        waits = self._waits
        if waits is None:
            return None
        if waits.lack is not None:
            self.lacks.append(waits.lack)
        folded, ticks = Folded(seconds), 0
        for tick in waits.ticks:
            second = (tick.unix_ns - begin_ns) // _NS
            if 0 <= second < seconds:
                ticks += 1
                for met in tick.met:
                    folded.add(second, stack_of(met))
        # As often as it was really asked.
        return folded.stacks(ticks / seconds) if ticks else None


def _unseen(error: PgdynoError) -> Lack:
    return Lack(f"perf could not look on: {error.fact}.", error.hint or "")


def _driver_root(_: int) -> str:
    return DRIVER


def _cpu_s(samples: Sequence[tuple[int, float]]) -> Series:
    """What a server had used when it was looked at."""
    times = np.array([at for at, _ in samples], dtype=np.int64)
    used_s = np.array([value for _, value in samples], dtype=np.float64)
    return Series("server.cpu_s", "s", "counter", times, used_s)


def _recordings_folder() -> Path:
    """Memory where there is room: the recording must not write to a device of the server."""
    memory = Path("/dev/shm")  # noqa: S108  the folder within is ours alone
    if memory.is_dir() and shutil.disk_usage(memory).free >= _ROOM_BYTES:
        return memory
    return Path("/tmp")  # noqa: S108  likewise


def _open_to(folder: Folder, reader: OsUser) -> None:
    """Let who reads enter, and nobody else."""
    if (owner := owner_of(reader)) is not None:
        os.fchown(folder.handle, -1, owner.gid)
        os.fchmod(folder.handle, 0o750)
    else:
        os.fchmod(folder.handle, 0o700)
