"""Pages of the standby against those of a crashed disk: judged by the core, and written down."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from pgdyno.folders import Folder
from pgdyno.guard.journal import JournalWriter, Step
from pgdyno.guard.relations import opened
from pgdyno.guard.source import Wanted
from pgdyno.model.errors import TargetError
from pgdyno.pages.repair import Change, PageJudge, PagesAt


@dataclass(slots=True)
class Tally:
    """Blocks, by what was found of them."""

    absent: int = 0
    zeroed: int = 0
    alike: int = 0
    fetched_bytes: int = 0


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """Blocks of the crashed disk, and what of them changes."""

    wanted: Wanted
    changes: Sequence[Change]
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
        for path, of_file in groupby(pairs, lambda it: it[0].path):
            ones, pages = zip(*of_file, strict=True)
            places = [PagesAt(one.first_block, one.file_at, one.blocks) for one in ones]
            with opened(self.data, path, writes=False) as handle:
                if handle is None:
                    raise TargetError(f"{path} is gone since it was looked at")
                changes = self.pages.changes(path, handle, places, pages)
            found += [
                None if change is None else JudgedRun(one, change, len(page))
                for one, change, page in zip(ones, changes, pages, strict=True)
            ]
        return found

    def take(self, ones: Iterable[JudgedRun]) -> None:
        """Write down the blocks that differ, as they come.

        Raises:
            TargetError: The journal cannot be written.
        """
        for one in ones:
            self._take(one)

    def _take(self, one: JudgedRun) -> None:
        at, changed = one.wanted, 0
        for change in one.changes:
            self.writer.add(
                at.path, at.first_block + change.first,
                at.file_at + change.first * self.block_bytes, change.old, change.new, change.lsns,
                step=Step.files,
            )  # fmt: skip
            changed += len(change.lsns)
            self.tally.zeroed += change.lsns.count(None)
        self.tally.fetched_bytes += one.fetched_bytes
        self.tally.alike += at.blocks - changed


def read_ahead(data: Folder, block_bytes: int, batch: Sequence[Wanted]) -> None:
    """Let the kernel read blocks of a disk side by side that will be asked for one by one."""
    for path, ones in groupby(batch, lambda one: one.path):
        with opened(data, path, writes=False) as handle:
            if handle is None:
                continue
            for one in ones:
                bytes_ = one.blocks * block_bytes
                os.posix_fadvise(handle, one.file_at, bytes_, os.POSIX_FADV_WILLNEED)
