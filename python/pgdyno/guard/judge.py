"""Pages of the standby against those of a crashed disk: judged by the core, and written down."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pgdyno.folders import Folder
from pgdyno.guard.journal import JournalWriter, Step
from pgdyno.guard.relations import opened
from pgdyno.guard.source import Wanted
from pgdyno.model.errors import TargetError
from pgdyno.pages.repair import PageJudge


@dataclass(slots=True)
class Tally:
    """Blocks, by what was found of them."""

    absent: int = 0
    zeroed: int = 0
    alike: int = 0
    fetched_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Judge:
    """Takes pages of the standby, and writes down those that differ from the disk's."""

    data: Folder
    block_bytes: int
    pages: PageJudge
    writer: JournalWriter
    tally: Tally

    def is_whole(self, one: Wanted, pages: bytes) -> bool:
        """Whether all checksums are right.

        Raises:
            TargetError: A page says what cannot be.
        """
        return not self.pages.unsound(one.path, one.first_block, one.blocks, pages)

    def take(self, fetched: Iterable[tuple[Wanted, bytes]]) -> None:
        """Write down the blocks that differ, of pages as they come.

        Raises:
            TargetError: A page says what cannot be, or the journal cannot be written.
        """
        for path, ones in groupby(fetched, lambda it: it[0].path):
            with opened(self.data, path, writes=False) as handle:
                for one, pages in ones:
                    bytes_ = one.blocks * self.block_bytes
                    old = b"" if handle is None else os.pread(handle, bytes_, one.file_at)
                    self._take(one, pages, old)

    def _take(self, one: Wanted, pages: bytes, old: bytes) -> None:
        size = self.block_bytes
        if len(old) != one.blocks * size:
            raise TargetError(f"{one.path} became shorter while it was looked at")
        new, _, lsns = self.pages.judged(one.path, one.first_block, pages, old)
        differing = [
            at
            for at in range(one.blocks)
            if old[at * size : (at + 1) * size] != new[at * size : (at + 1) * size]
        ]
        self.tally.fetched_bytes += len(pages)
        self.tally.alike += one.blocks - len(differing)
        self.tally.zeroed += sum(lsns[at] is None for at in differing)
        for first, count in runs(differing):
            begin, end = first * size, (first + count) * size
            self.writer.add(
                one.path, one.first_block + first, one.file_at + begin, old[begin:end],
                new[begin:end], tuple(lsns[first : first + count]), step=Step.files,
            )  # fmt: skip


def read_ahead(data: Folder, block_bytes: int, batch: Sequence[Wanted]) -> None:
    """Let the kernel read blocks of a disk side by side that will be asked for one by one."""
    for path, ones in groupby(batch, lambda one: one.path):
        with opened(data, path, writes=False) as handle:
            if handle is None:
                continue
            for one in ones:
                bytes_ = one.blocks * block_bytes
                os.posix_fadvise(handle, one.file_at, bytes_, os.POSIX_FADV_WILLNEED)


def runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Places that follow each other: the first, and how many."""
    first = count = 0
    for place in places:
        if count and place == first + count:
            count += 1
            continue
        if count:
            yield first, count
        first, count = place, 1
    if count:
        yield first, count
