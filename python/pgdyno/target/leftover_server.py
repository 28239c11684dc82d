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
from collections.abc import Collection
from pathlib import Path

from pgdyno.folders import Folder
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser
from pgdyno.target.host_facts import process_started_s

PID_FILE = "postmaster.pid"
_PID_FILE_BYTES_MAX = 4096
_STOP_S = 60.0
_ENDING_S = 20.0
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
    if not data.has(PID_FILE):
        return
    lines = data.read(PID_FILE, user.uid, _PID_FILE_BYTES_MAX).splitlines()
    try:
        pid, started_s = int(lines[0]), int(lines[2])
        handle = os.pidfd_open(pid)
    except (IndexError, ValueError, OSError, OverflowError):
        return  # cut short, or of a process that is gone
    try:
        if _is_server(pid, data, user, started_s):
            _require_known(handle, pid, data, programs)
            _stop(handle, pid, data)
    finally:
        os.close(handle)


def _is_server(pid: int, data: Folder, user: OsUser, started_s: int) -> bool:
    """Whether a process that is held is the server on these data, by what the kernel says of it."""
    proc = Path(f"/proc/{pid}")
    try:
        working, here = os.stat(proc / "cwd"), data.facts
        return (
            (working.st_dev, working.st_ino) == (here.st_dev, here.st_ino)
            and proc.stat().st_uid == user.uid
            and _program(pid).name == "postgres"
            and abs(process_started_s(pid) - started_s) <= _START_SLACK_S
        )
    except OSError:
        return False  # gone, or none of ours


def _program(pid: int) -> Path:
    path = os.readlink(f"/proc/{pid}/exe")
    return Path(path.removesuffix(" (deleted)"))


def _require_known(handle: int, pid: int, data: Folder, programs: Collection[Path]) -> None:
    program = _program(pid)
    if program in {known.resolve() for known in programs}:
        return
    # The kernel told it to stop when the run that started it was killed.
    if not select.select([handle], [], [], _ENDING_S)[0]:
        raise TargetError(
            f"process {pid}, {program}, works in {data.path}, and is of an installation that this"
            " run does not use",
            f"Stop it yourself: `kill -QUIT {pid}`.",
        )


def _stop(handle: int, pid: int, data: Folder) -> None:
    for number in (signal.SIGQUIT, signal.SIGKILL):  # its data are thrown away
        try:
            signal.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return
        if select.select([handle], [], [], _STOP_S)[0]:
            return
    raise TargetError(f"process {pid}, a server on {data.path}, does not end")
