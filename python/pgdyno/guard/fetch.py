"""Blocks fetched from the standby side by side, each read until it is known to be whole.

What is made of them is made in the thread that fetched them, so that threads that wait for a server
or a disk leave the others the CPUs.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

from pgdyno.guard.source import Source, Wanted, batches
from pgdyno.model.errors import TargetError

_BATCH_BLOCKS = 256
_READS_MAX = 6
_READ_AGAIN_S = 0.2

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")
Making: TypeAlias = Callable[[Sequence[Wanted], Sequence[bytes]], Sequence[_Made | None]]
"""What is made of blocks and their bytes, one for one; None: by their checksums not whole."""


def fetched(
    source: Source,
    wanted: Sequence[Wanted],
    block_bytes: int,
    sessions: int,
    making: Making[_Made],
    soon: Callable[[Sequence[Wanted]], None],
    *,
    have_checksums: bool,
) -> Generator[_Made]:
    """What is made of blocks, in no order; they have fewer bytes where the standby's file ends.

    Args:
        source: A session on it, held still meanwhile: those that fetch go to the same server.
        wanted: Which.
        block_bytes: Of each.
        sessions: That fetch side by side.
        making: What is made of a batch of them.
        soon: Told, in the thread that fetches them, which will be given next.
        have_checksums: Whether pages have; else they are read until two looks are the same.

    Raises:
        TargetError: The standby is gone, another server answers for it, or a page is not whole
            however often it is read.
    """
    asked = list(batches(wanted, _BATCH_BLOCKS))
    count = max(1, min(sessions, len(asked)))
    done: queue.Queue[Sequence[_Made] | BaseException] = queue.Queue(count)
    over = threading.Event()

    def fetch(mine: Sequence[Sequence[Wanted]]) -> None:
        try:
            with source.again() as session:
                for batch in mine:
                    soon(batch)
                    if have_checksums:
                        made = _whole(session, batch, block_bytes, making)
                    else:
                        pages = _still(session, batch, block_bytes)
                        made = [one for one in making(batch, pages) if one is not None]
                    if not _given(done, made, over):
                        return
        except BaseException as error:  # told in the other thread
            _given(done, error, over)

    threads = [
        threading.Thread(target=fetch, args=(asked[at::count],), name="pgdyno fetch", daemon=True)
        for at in range(count)
    ]
    for thread in threads:
        thread.start()
    try:
        for _ in asked:
            got = done.get()
            if isinstance(got, BaseException):
                raise got
            yield from got
    finally:
        over.set()
        for thread in threads:
            thread.join()


def _given(where: queue.Queue[_Given], what: _Given, over: threading.Event) -> bool:
    """Put something there once there is room; whether anybody still waits for it."""
    while not over.is_set():
        try:
            where.put(what, timeout=0.1)
        except queue.Full:
            continue
        return True
    return False


def _whole(
    standby: Source, batch: Sequence[Wanted], block_bytes: int, making: Making[_Made]
) -> Sequence[_Made]:
    """What is made of pages that were not read while they were written, by their checksums."""
    found: list[_Made] = []
    for _ in range(_READS_MAX):
        made = making(batch, list(standby.pages(batch, block_bytes)))
        found += [one for one in made if one is not None]
        batch = [one for one, of_it in zip(batch, made, strict=True) if of_it is None]
        if not batch:
            return found
        time.sleep(_READ_AGAIN_S)
    raise _never_whole(batch[0])


def _still(standby: Source, batch: Sequence[Wanted], block_bytes: int) -> Sequence[bytes]:
    """Pages that were not read while they were written, as two looks saw the same."""
    pages = list(standby.pages(batch, block_bytes))
    doubtful = list(range(len(batch)))
    for _ in range(_READS_MAX):
        again = list(standby.pages([batch[at] for at in doubtful], block_bytes))
        changed = [at for at, page in zip(doubtful, again, strict=True) if page != pages[at]]
        for at, page in zip(doubtful, again, strict=True):
            pages[at] = page
        if not changed:
            return pages
        doubtful = changed
    raise _never_whole(batch[doubtful[0]])


def _never_whole(one: Wanted) -> TargetError:
    return TargetError(
        f"blocks {one.first_block} to {one.first_block + one.blocks - 1} of {one.path} are not"
        f" whole at the source, however often they are read",
        "It is damaged, or still writes: take nothing from it.",
    )
