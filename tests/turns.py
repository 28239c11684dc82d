"""Turns with the machine: some tests change it, and others need it to stay as it is meanwhile.

The kernel gives a lock that many share to one more of them whenever they ask, so who wants it alone
might wait for ever. Hence all pass a turnstile first, in which one who waits holds up those behind.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

# Folders that every session sees: no file is made where others could put a link.
MACHINE = Path("/sys")
TURNSTILE = Path("/sys/kernel")


@contextmanager
def turn(*, alone: bool, lock: Path = MACHINE, turnstile: Path = TURNSTILE) -> Iterator[None]:
    """Have the machine, alone or with all others that do not change it."""
    with ExitStack() as held:
        with _held(turnstile, fcntl.LOCK_EX):
            held.enter_context(_held(lock, fcntl.LOCK_EX if alone else fcntl.LOCK_SH))
        yield


@contextmanager
def _held(folder: Path, how: int) -> Iterator[None]:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)
