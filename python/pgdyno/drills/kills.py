"""Processes of a server of ours, killed: as by an operator's mistake, or for want of memory.

And whether one of them recovers it.
"""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import LiteralString

import psycopg

from pgdyno.folders import failing
from pgdyno.model.drill import ServerProcess
from pgdyno.model.errors import TargetError
from pgdyno.session import own_session
from pgdyno.target.interface import Ready

_LOAD = "pgdyno"  # as the driver's sessions call themselves
_STARTUP = b"postgres: startup"
_OF_KIND = """
SELECT pid FROM pg_stat_activity
WHERE backend_type = %s AND pid <> pg_backend_pid()
ORDER BY (application_name = %s) DESC, backend_start LIMIT 1
"""


def kill(ready: Ready, which: ServerProcess) -> None:
    """Kill a process of a server.

    Args:
        ready: The server, which is ours.
        which: Of which kind; of sessions one of the load.

    Raises:
        TargetError: There is none, or it is not a child of the server any more.
    """
    postmaster = ready.postmaster_pid
    assert postmaster is not None, "only servers of ours are drilled"
    pid = postmaster if which == "postmaster" else _pid(ready, which)
    with failing(f"kill {which} {pid}"), ExitStack() as held:
        handle = os.pidfd_open(pid)
        held.callback(os.close, handle)
        # Looked at once it is held: the number cannot become another process's in between.
        if pid != postmaster and _parent(pid) != postmaster:
            raise TargetError(f"process {pid} is no {which} of server {postmaster} any more")
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def kill_all(postmaster: int) -> None:
    """Kill every process of a server of ours, as good as at once: they stand still before.

    Args:
        postmaster: Its first process.

    Raises:
        TargetError: It has ended, or the kernel does not tell its children; it is killed then.
    """
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
    with failing(f"kill server {postmaster}"), ExitStack() as held:
        # What stands still is killed, whatever fails: nobody else would let it go on.
        held.callback(_end, _stopped(postmaster, held))
        for child in map(int, children.read_text().split()):
            with suppress(ProcessLookupError, TargetError):
                held.callback(_end, _stopped(child, held, postmaster))


def recovers(postmaster: int) -> bool:
    """Whether a startup process of a server of ours is at work."""
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
    with suppress(OSError):  # it ends
        for child in children.read_text().split():
            with suppress(OSError):
                if _STARTUP in Path(f"/proc/{child}/cmdline").read_bytes():
                    return True
    return False


def _end(handle: int) -> None:
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _stopped(pid: int, held: ExitStack, parent: int | None = None) -> int:
    """A process that stands still, by a descriptor of it.

    Raises:
        ProcessLookupError: It has ended.
        TargetError: Its number is another process's by now.
    """
    handle = os.pidfd_open(pid)
    held.callback(os.close, handle)
    if parent is not None and _parent(pid) != parent:
        raise TargetError(f"process {pid} is none of server {parent} any more")
    signal.pidfd_send_signal(handle, signal.SIGSTOP)
    return handle


def stand_still(ready: Ready, query: LiteralString) -> None:
    """Stop (SIGSTOP) the process of a server of ours that a query names.

    Args:
        ready: The server.
        query: Returns its number.

    Raises:
        TargetError: There is none.
    """
    assert ready.postmaster_pid is not None, "only servers of ours are drilled"
    try:
        with own_session(ready.connection) as session:
            row = session.execute(query).fetchone()
    except psycopg.Error as error:
        raise TargetError(f"the server does not tell its processes: {error}") from error
    if row is None:
        raise TargetError("the server sends nothing to a standby")
    with failing(f"stop process {row[0]}"), ExitStack() as held:
        _stopped(int(row[0]), held, ready.postmaster_pid)


def _pid(ready: Ready, which: ServerProcess) -> int:
    try:
        with own_session(ready.connection) as session:
            row = session.execute(_OF_KIND, (which, _LOAD)).fetchone()
    except psycopg.Error as error:
        raise TargetError(f"the server does not tell its processes: {error}") from error
    if row is None:
        raise TargetError(f"the server has no {which}")
    return int(row[0])


def _parent(pid: int) -> int:
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except OSError as error:
        raise TargetError(f"process {pid} has ended") from error
    return int(after_name.split()[1])
