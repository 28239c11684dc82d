"""The daemon's sign of life, in a file of the folder in memory: who reads it needs no server.

Its age is counted by the kernel's own clock, which nobody sets.
"""

from __future__ import annotations

import os
import stat

from pgdyno.folders import Folder, failing, owner_of
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.locks import locked_or_closed
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import Heartbeat
from pgdyno.model.record_json import from_json, to_json

LOCK = "lock"
"""Held by the daemon, one at a time."""
VERSION = 2
_FILE = "heartbeat.json"
_METRICS = "metrics.prom"
_METRICS_MODE = 0o644  # a collector reads it, where it may enter the folder


def beat(folder: Folder, directory: DataDirectory, heartbeat: Heartbeat, metrics: str) -> None:
    """Give a sign of life.

    Raises:
        TargetError: It cannot be written.
    """
    folder.write(_FILE, to_json(heartbeat), 0o600, owner_of(directory.user))
    folder.write(_METRICS, metrics, _METRICS_MODE, owner_of(directory.user))


def last_beat(folder: Folder, directory: DataDirectory) -> Heartbeat | None:
    """The last sign of life; None: there was none since the machine began, or none is understood.

    Raises:
        TargetError: It is a link, or somebody else's.
    """
    if not folder.has(_FILE):
        return None
    try:
        found = from_json(Heartbeat, folder.read(_FILE, directory.user.uid))
    except ValueError:
        return None
    return found if found.version == VERSION else None


def take_lock(folder: Folder, directory: DataDirectory) -> int | None:
    """Take the daemon's lock; None: another one has it.

    It is the server's user's, whoever takes it: root may ask for the daemon that systemd runs as
    that user, and that daemon may come after one of root's.

    Returns:
        The descriptor that holds it until it is closed.

    Raises:
        TargetError: It cannot be made, or is somebody else's.
    """
    return locked_or_closed(_lock_file(folder, directory))


def _lock_file(folder: Folder, directory: DataDirectory) -> int:
    how, owner = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, owner_of(directory.user)
    with failing(f"open {folder.path / LOCK}"):
        try:
            handle = os.open(LOCK, how | os.O_CREAT | os.O_EXCL, 0o600, dir_fd=folder.handle)
        except FileExistsError:
            handle = os.open(LOCK, how, dir_fd=folder.handle)
        else:
            if owner is not None:  # never of a file that was there: it may be a link to another
                os.fchown(handle, owner.uid, owner.gid)
    facts = os.fstat(handle)
    if stat.S_ISREG(facts.st_mode) and facts.st_uid in (os.geteuid(), directory.user.uid):
        return handle
    os.close(handle)
    raise TargetError(f"{folder.path / LOCK} is no file of user {directory.user.name}")


def daemon_runs(folder: Folder, directory: DataDirectory) -> bool:
    """Whether somebody holds the daemon's lock."""
    handle = take_lock(folder, directory) if folder.has(LOCK) else None
    if handle is None:
        return folder.has(LOCK)
    with Folder(folder.path / LOCK, handle):
        return False
