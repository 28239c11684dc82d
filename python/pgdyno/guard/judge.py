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
class JudgedRun:
    """Blocks of the crashed disk, and what takes their place."""

    wanted: Wanted
    old: bytes
    new: bytes
    lsns: Sequence[str | None]  # of each new page; None: zeroes
    fetched_bytes: int


@dataclass(frozen=True, slots=True)
class Judge:
    """Takes pages of the standby, and writes down those that differ from the disk's."""

    data: Folder
    block_bytes: int
    pages: PageJudge
    writer: JournalWriter
    tally: Tally

    def judged(
        self, batch: Sequence[Wanted], fetched: Sequence[bytes]
    ) -> Sequence[JudgedRun | None]:
        """What takes the place of blocks; None: by its checksum a page is not whole.

        Raises:
            TargetError: A page says what cannot be.
        """
        found: list[JudgedRun | None] = []
        pairs = zip(batch, fetched, strict=True)
        for path, ones in groupby(pairs, lambda it: it[0].path):
            with opened(self.data, path, writes=False) as handle:
                for one, pages in ones:
                    bytes_ = one.blocks * self.block_bytes
                    old = b"" if handle is None else os.pread(handle, bytes_, one.file_at)
                    if len(old) != bytes_:
                        raise TargetError(f"{path} became shorter while it was looked at")
                    new, unsound, lsns = self.pages.judged(path, one.first_block, pages, old)
                    whole = JudgedRun(one, old, new, lsns, len(pages))
                    found.append(None if unsound else whole)
        return found

    def take(self, ones: Iterable[JudgedRun]) -> None:
        """Write down the blocks that differ, as they come.

        Raises:
            TargetError: The journal cannot be written.
        """
        for one in ones:
            self._take(one)

    def _take(self, one: JudgedRun) -> None:
        at, old, new, size = one.wanted, one.old, one.new, self.block_bytes
        differ = differing(old, new, size)
        self.tally.fetched_bytes += one.fetched_bytes
        self.tally.alike += at.blocks - len(differ)
        self.tally.zeroed += sum(one.lsns[nth] is None for nth in differ)
        for first, count in runs(differ):
            begin, end = first * size, (first + count) * size
            self.writer.add(
                at.path, at.first_block + first, at.file_at + begin, old[begin:end],
                new[begin:end], tuple(one.lsns[first : first + count]), step=Step.files,
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


def differing(old: bytes, new: bytes, block_bytes: int) -> list[int]:
    """Which of the new blocks are other than the old ones; those that are missing there are."""
    return [
        nth
        for nth, at in enumerate(range(0, len(new), block_bytes))
        if old[at : at + block_bytes] != new[at : at + block_bytes]
    ]


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
