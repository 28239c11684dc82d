"""Locks on files and folders that are open, held until they are closed."""

from __future__ import annotations

import fcntl
import os
import time

_PAUSE_S = 0.02


def try_lock(handle: int, patience_s: float = 0.0, *, shared: bool = False) -> bool:
    """Lock what is open for this process alone; False: another one has it.

    Args:
        handle: Of a file or a folder.
        patience_s: How long another one is waited for.
        shared: Others who share it may have it as well.

    Raises:
        OSError: It is on a file system without locks.
    """
    deadline = time.monotonic() + patience_s
    how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
        else:
            return True
        time.sleep(_PAUSE_S)


def locked_or_closed(handle: int) -> int | None:
    """The same descriptor, which holds the lock; None: another process has it, and it is closed."""
    if try_lock(handle):
        return handle
    os.close(handle)
    return None
