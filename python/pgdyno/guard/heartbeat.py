"""The daemon's sign of life, in a file of the folder in memory: who reads it needs no server.

Its age is counted by the kernel's own clock, which nobody sets.
"""

from __future__ import annotations

from pgdyno.folders import Folder, owner_of
from pgdyno.guard.data_directory import DataDirectory
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


def daemon_runs(folder: Folder) -> bool:
    """Whether somebody holds the daemon's lock."""
    handle = folder.lock(LOCK) if folder.has(LOCK) else None
    if handle is None:
        return folder.has(LOCK)
    with Folder(folder.path / LOCK, handle):
        return False
