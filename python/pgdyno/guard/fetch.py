"""Blocks fetched from the standby side by side, each read until it is known to be whole."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import TypeAlias, TypeVar

from pgdyno.guard.source import Source, Wanted, batches
from pgdyno.model.errors import TargetError

_BATCH_BLOCKS = 1024
_READS_MAX = 6
_READ_AGAIN_S = 0.2

Batch: TypeAlias = Sequence[tuple[Wanted, bytes]]
_Given = TypeVar("_Given")


def fetched(
    source: Source,
    wanted: Sequence[Wanted],
    block_bytes: int,
    sessions: int,
    is_whole: Callable[[Wanted, bytes], bool] | None,
    soon: Callable[[Sequence[Wanted]], None],
) -> Generator[tuple[Wanted, bytes]]:
    """Blocks with their bytes, in no order: fewer bytes where the standby's file ends.

    Args:
        source: A session on it, held still meanwhile: those that fetch go to the same server.
        wanted: Which.
        block_bytes: Of each.
        sessions: That fetch side by side.
        is_whole: Whether pages are, by their checksums; None: they have none, and are read twice.
        soon: Told, in the thread that fetches them, which will be given next.

    Raises:
        TargetError: The standby is gone, another server answers for it, or a page is not whole
            however often it is read.
    """
    asked = list(batches(wanted, _BATCH_BLOCKS))
    count = max(1, min(sessions, len(asked)))
    done: queue.Queue[Batch | BaseException] = queue.Queue(count)
    over = threading.Event()

    def fetch(mine: Sequence[Sequence[Wanted]]) -> None:
        try:
            with source.again() as session:
                for batch in mine:
                    soon(batch)
                    pages = _stable(session, batch, block_bytes, is_whole)
                    if not _given(done, list(zip(batch, pages, strict=True)), over):
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


def _stable(
    standby: Source,
    batch: Sequence[Wanted],
    block_bytes: int,
    is_whole: Callable[[Wanted, bytes], bool] | None,
) -> Sequence[bytes]:
    """Pages that were not read while they were written."""
    pages = list(standby.pages(batch, block_bytes))
    doubtful = list(range(len(batch)))
    for _ in range(_READS_MAX):
        if is_whole is not None:
            doubtful = [at for at in doubtful if not is_whole(batch[at], pages[at])]
        if not doubtful:
            return pages
        if is_whole is not None:
            time.sleep(_READ_AGAIN_S)
        again = standby.pages([batch[at] for at in doubtful], block_bytes)
        changed = []
        for at, page in zip(doubtful, again, strict=True):
            if is_whole is not None or page != pages[at]:
                changed.append(at)
            pages[at] = page
        doubtful = changed
    one = batch[doubtful[0]] if doubtful else None
    if one is None:
        return pages
    raise TargetError(
        f"blocks {one.first_block} to {one.first_block + one.blocks - 1} of {one.path} are not"
        f" whole at the source, however often they are read",
        "It is damaged, or still writes: take nothing from it.",
    )
