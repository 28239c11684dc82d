"""A server of ours that outlived its run: found by its pid file, known by its process, stopped.

A pid file is a claim: its number may long be another process's, and whoever owns the data can
write any number there. So a process is signalled only after it was held by a descriptor of its own
(pidfd, which no reuse of the number can redirect) and is what the file says: PostgreSQL's program,
run by its user, working in this very data directory, since that time.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser
from pgdyno.target.host_facts import process_started_s

PID_FILE = "postmaster.pid"
PID_FILE_BYTES_MAX = 4096
_STOP_S = 60.0
_ENDING_S = 20.0
_LAST_S = 5.0  # that what was killed may take until it is gone
_PAUSE_S = 0.05
_NAMES = ("postgres", "postmaster")
_FIRST = 1  # process of a namespace: of the machine, or of a container
_START_SLACK_S = 5.0  # the file is written a moment after the start; the clock may be set since


def stop_leftover(data: Folder, user: OsUser, programs: Collection[Path]) -> None:
    """Stop a server that a killed run left on a data directory of ours.

    Args:
        data: The data directory.
        user: Who runs servers.
        programs: `postgres` of the installations that may have been started on it.

    Raises:
        TargetError: It does not stop, or it is a server of another installation.
    """
    with server_on(data, user) as found:
        if found is not None:
            _require_known(found, data, programs)
            _stop(found, data)


@dataclass(frozen=True, slots=True)
class Postmaster:
    """The server on a data directory, held by a descriptor of its process."""

    pid: int
    handle: int
    port: int
    sockets: str  # the first folder of its sockets; empty: it has none
    address: str  # that it listens on; empty: none

    def reload(self) -> None:
        """Let it read its configuration again; one that is gone reads it when it starts."""
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGHUP)


@contextmanager
def server_on(data: Folder, user: OsUser, *, timed: bool = True) -> Iterator[Postmaster | None]:
    """The server that runs on a data directory; None: none does.

    Args:
        data: The data directory.
        user: Who runs servers there.
        timed: Whether it must have begun when its file says. Who only has it read its files again
            need not ask, and still knows it when the clock was set.

    Raises:
        TargetError: The pid file is a link, or somebody else's.
    """
    held = _held(data, user, timed)
    try:
        yield held
    finally:
        if held is not None:
            os.close(held.handle)


def require_no_server(data: Folder, user: OsUser, patience_s: float | None = None) -> None:
    """Refuse data on which a server may run that `server_on` does not know.

    In a container processes have other numbers, so what the pid file says tells nothing of one;
    so every process that is seen from here is asked where it works. What a postmaster left that was
    killed is found so, too.

    Args:
        data: The data directory.
        user: Who owns it, and would run the server.
        patience_s: How long what ends is waited for; None: as long as what was just killed takes.

    Raises:
        TargetError: One works there; or the pid file names a process of which it cannot be told.
    """
    deadline = time.monotonic() + (_LAST_S if patience_s is None else patience_s)
    while (pid := _working(data)) is not None:
        if time.monotonic() > deadline:
            raise TargetError(
                f"process {pid} of PostgreSQL works in {data.path}",
                "Stop its server, where it runs: it may be in a container.",
            )
        time.sleep(_PAUSE_S)
    pid = _named(data, user)
    if pid is not None and _may_be_server(pid, data, user):
        raise TargetError(
            f"{data.path / PID_FILE} is of process {pid}, and whether that is a server on these"
            " data cannot be told from here",
            "See that none runs, in no container either, and remove the file.",
        )


def _working(data: Folder) -> int | None:
    """A process of PostgreSQL's in these data, by any number; None: there is none."""
    for name in filter(str.isdecimal, os.listdir("/proc")):
        proc = Path("/proc") / name
        try:
            if _is_in(proc, data) and (proc / "comm").read_text().strip() in _NAMES:
                return int(name)
        except OSError:
            continue  # gone, or another user's
    return None


def _named(data: Folder, user: OsUser) -> int | None:
    """The number that the pid file has; None: there is no file, or none in it."""
    if not data.has(PID_FILE):
        return None
    first, _, _ = data.read(PID_FILE, user.uid, PID_FILE_BYTES_MAX).partition("\n")
    return int(first) if first.isdecimal() else None


def _may_be_server(pid: int, data: Folder, user: OsUser) -> bool:
    """Whether a process may be a server on these data: of a container nothing can be said."""
    if pid == _FIRST:
        return True
    proc = Path(f"/proc/{pid}")
    try:
        return _is_in(proc, data)
    except PermissionError:  # not even where it works may be known
        with suppress(OSError):
            return proc.stat().st_uid == user.uid
    except OSError:
        pass
    return False  # gone


def _is_in(proc: Path, data: Folder) -> bool:
    working, here = os.stat(proc / "cwd"), data.facts
    return (working.st_dev, working.st_ino) == (here.st_dev, here.st_ino)


def _held(data: Folder, user: OsUser, timed: bool) -> Postmaster | None:
    if not data.has(PID_FILE):
        return None
    lines = [*data.read(PID_FILE, user.uid, PID_FILE_BYTES_MAX).splitlines(), "", "", ""]
    try:
        pid, started_s = int(lines[0]), int(lines[2])
        handle = os.pidfd_open(pid)
    except (IndexError, ValueError, OSError, OverflowError):
        return None  # cut short, or of a process that is gone
    if not _is_server(pid, data, user, started_s if timed else None):
        os.close(handle)
        return None
    port = int(lines[3]) if lines[3].isdecimal() else 0  # none yet while it starts
    return Postmaster(pid, handle, port, lines[4], lines[5])


def _is_server(pid: int, data: Folder, user: OsUser, started_s: int | None) -> bool:
    """Whether a process that is held is the server on these data, by what the kernel says of it."""
    proc = Path(f"/proc/{pid}")
    try:
        return (
            _is_in(proc, data)
            and proc.stat().st_uid == user.uid
            and _program(pid).name == "postgres"
            and (started_s is None or abs(process_started_s(pid) - started_s) <= _START_SLACK_S)
        )
    except OSError:
        return False  # gone, or none of ours


def _program(pid: int) -> Path:
    path = os.readlink(f"/proc/{pid}/exe")
    return Path(path.removesuffix(" (deleted)"))


def _require_known(found: Postmaster, data: Folder, programs: Collection[Path]) -> None:
    program = _program(found.pid)
    if program in {known.resolve() for known in programs}:
        return
    # The kernel told it to stop when the run that started it was killed.
    if not select.select([found.handle], [], [], _ENDING_S)[0]:
        raise TargetError(
            f"process {found.pid}, {program}, works in {data.path}, and is of an installation that"
            " this run does not use",
            f"Stop it yourself: `kill -QUIT {found.pid}`.",
        )


def _stop(found: Postmaster, data: Folder) -> None:
    for number in (signal.SIGQUIT, signal.SIGKILL):  # its data are thrown away
        try:
            signal.pidfd_send_signal(found.handle, number)
        except ProcessLookupError:
            return
        if select.select([found.handle], [], [], _STOP_S)[0]:
            return
    raise TargetError(f"process {found.pid}, a server on {data.path}, does not end")
