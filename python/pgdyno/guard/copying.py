"""A primary's files against those of a crashed cluster: what differs, written into a journal.

Nothing of the cluster is changed here. Steps are in the order in which they have to be on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from pgdyno.folders import Folder
from pgdyno.guard.blocks_in_wal import BlocksInWal
from pgdyno.guard.fetch import fetched
from pgdyno.guard.journal import Ends, JournalWriter, Step
from pgdyno.guard.judge import read_ahead
from pgdyno.guard.leader import CHUNK_BYTES, Leader, chunks_of
from pgdyno.guard.relations import opened
from pgdyno.guard.source import Wanted, run_of
from pgdyno.guard.tree import CONTROL, Trees, relation_of, require_size
from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of, lsn_text
from pgdyno.model.repair import RedoBegin
from pgdyno.pages.repair import PageJudge

_NO_END = "FFFFFFFF/FFFFFFFF"


@dataclass(slots=True)
class Copier:
    """Takes what differs, and writes it down."""

    data: Folder
    begin: RedoBegin  # of the crashed cluster
    backup_lsn: str  # pages that are newer are mended by replay
    trees: Trees
    writer: JournalWriter
    blocks: int = 0
    fetched_bytes: int = 0
    files: dict[str, None] = field(default_factory=dict)  # that were not taken by blocks

    # -- relations ----------------------------------------------------------------------------

    def wanted(self, named: BlocksInWal | None) -> Iterator[Wanted]:
        """Blocks of relations that may differ; None: all of them."""
        size = self.begin.block_bytes
        for path, part, places in self._places(named):
            first = part * self.begin.segment_blocks
            for begin, count in _runs(places):
                yield from run_of(path, first + begin, begin, count, size)

    def blocks_wanted(self, named: BlocksInWal | None) -> int:
        """How many that is: a primary may tell of more than memory has room to list."""
        return sum(len(places) for _, _, places in self._places(named))

    def _places(self, named: BlocksInWal | None) -> Iterator[tuple[str, int, Sequence[int]]]:
        """Blocks of each file that may differ, counted within it: its path, its part, which."""
        size = self.begin.block_bytes
        for path, bytes_ in self.trees.source.items():
            relation = relation_of(path)
            if relation is None:
                continue
            first, there = relation.part * self.begin.segment_blocks, bytes_ // size
            local = self.trees.local.get(path)
            places: Sequence[int] = range(there)
            if named is not None and local is not None and relation.fork == "main":
                known = (one - first for one in named.blocks.get(relation.stem, ()))
                beyond = range(local // size, there)
                places = sorted({one for one in known if 0 <= one < there} | set(beyond))
            yield path, relation.part, places

    def take_relations(self, source: Leader, wanted: Sequence[Wanted], sessions: int) -> None:
        """Fetch blocks side by side, and write down those that differ.

        Raises:
            TargetError: The primary is gone, or a page of it is damaged.
        """
        size = self.begin.block_bytes
        judge = PageJudge(size, _NO_END, source_has_checksums=True, has_checksums=True)
        soon = partial(read_ahead, self.data, size)

        def whole(
            batch: Sequence[Wanted], pages: Sequence[bytes]
        ) -> Sequence[tuple[Wanted, bytes] | None]:
            pairs = zip(batch, pages, strict=True)
            return [pair if self._is_whole(judge, *pair) else None for pair in pairs]

        with closing(
            fetched(source, wanted, size, sessions, whole, soon, have_checksums=True)
        ) as pages:
            for one, page in pages:
                # Where the file became shorter meanwhile, replay cuts it, too.
                self._take(one, page.ljust(one.blocks * size, b"\0"), judge)
        for path, bytes_ in self.trees.source.items():
            if relation_of(path) is not None:
                self._resize(path, bytes_)

    def _is_whole(self, judge: PageJudge, one: Wanted, pages: bytes) -> bool:
        """Whether each page is sound, or was changed since replay will begin, and so is mended."""
        if not self.begin.has_checksums:
            return True
        size = self.begin.block_bytes
        unsound = judge.unsound(one.path, one.first_block, pages)
        begin = lsn_of(self.backup_lsn)
        return all(_lsn_at(pages, (at - one.first_block) * size) >= begin for at in unsound)

    def _take(self, one: Wanted, new: bytes, judge: PageJudge) -> None:
        old, size = self._old(one.path, one.file_at, len(new)), self.begin.block_bytes
        self.fetched_bytes += len(new)
        for first, count in judge.differing(old, new):
            self.blocks += count
            begin, end = first * size, (first + count) * size
            self.writer.add(
                one.path, one.first_block + first, one.file_at + begin, old[begin:end],
                new[begin:end], _lsns(new[begin:end], size), ends=self._ends(one.path),
                step=Step.files,
            )  # fmt: skip

    def _ends(self, path: str) -> Ends:
        return self.trees.local.get(path), self.trees.source[path]

    def _resize(self, path: str, bytes_: int) -> None:
        """What a file has beyond its new end, or that it is there at all."""
        local = self.trees.local.get(path)
        if local is None and bytes_ == 0:
            self.writer.add(path, 0, 0, b"", b"", ends=(None, 0), step=Step.files)
        elif local is not None and local > bytes_:
            self._forget(path, bytes_, (local, bytes_), Step.files)

    # -- other files --------------------------------------------------------------------------

    def take_files(self, leader: Leader) -> None:
        """Fetch files that are none of relations, and write down those that differ.

        Raises:
            TargetError: The primary is gone, or its role may not read.
        """
        paths = [path for path in self.trees.source if relation_of(path) is None]
        small = [path for path in paths if self.trees.source[path] < CHUNK_BYTES]
        for one, data in leader.raw([Wanted(path, 0, 0, CHUNK_BYTES) for path in small]):
            self._replace(one.path, data)
        for path in set(paths) - set(small):
            pieces = [
                data for _, data in leader.raw(list(chunks_of(path, self.trees.source[path])))
            ]
            gone = any(data is None for data in pieces)
            self._replace(path, None if gone else b"".join(filter(None, pieces)))
        for path in self.trees.removed:
            self.remove(path, Step.files)
        control = leader.whole(CONTROL)
        if control is None:
            raise TargetError(f"the primary has no {CONTROL}")
        self._replace(CONTROL, control)

    def _replace(self, path: str, new: bytes | None) -> None:
        """Write down that a file becomes another one; None: it was removed meanwhile."""
        if new is None:
            self.remove(path, Step.files)
            return
        self.fetched_bytes += len(new)
        self.put(path, new, Step.files)

    def put(self, path: str, new: bytes, step: Step) -> None:
        """Write down that a file has these bytes, if it has others or is not there.

        Raises:
            TargetError: The journal cannot be written; or as `content`.
        """
        old = self.content(path)
        if old == new:
            return
        self.files[path] = None
        ends = None if old is None else len(old), len(new)
        self.writer.add(path, 0, 0, old or b"", new, ends=ends, step=step)

    def remove(self, path: str, step: Step) -> None:
        """Write down that a file is removed.

        Raises:
            TargetError: The journal cannot be written.
        """
        local = self._bytes(path)
        if local is not None:
            self._forget(path, 0, (local, None), step)

    def drop(self, path: str, step: Step) -> None:
        """Write down that a file is removed that nobody will ask for: its bytes are not kept."""
        self.writer.add(path, 0, 0, b"", b"", ends=(None, None), step=step)

    def _forget(self, path: str, from_byte: int, ends: Ends, step: Step) -> None:
        """Keep the bytes that a file has from a place on."""
        size = ends[0] or 0
        for at in range(from_byte, max(size, from_byte + 1), CHUNK_BYTES):
            old = self._old(path, at, min(CHUNK_BYTES, size - at))
            self.writer.add(path, 0, at, old, b"", ends=ends, step=step)

    def take_wal(self, leader: Leader, names: Sequence[str]) -> None:
        """Fetch segments of WAL, and write down that they are put there.

        Raises:
            TargetError: The primary is gone, or has a segment no more.
        """
        size = self.begin.wal_segment_bytes
        for name in names:
            path = f"pg_wal/{name}"
            ends = self._bytes(path), size
            for one, data in leader.raw(list(chunks_of(path, size))):
                if data is None or len(data) != one.blocks:
                    raise TargetError(f"the primary has segment {name} no more", "Call it again.")
                self.fetched_bytes += len(data)
                old = self._old(path, one.file_at, len(data))
                self.writer.add(path, 0, one.file_at, old, data, ends=ends, step=Step.wal)
            self.files[path] = None

    # -- what is here -------------------------------------------------------------------------

    def content(self, path: str) -> bytes | None:
        """What a file on this machine holds; None: there is none.

        Raises:
            TargetError: It is too large to be read whole.
        """
        size = self._bytes(path)
        if size is None:
            return None
        require_size(path, size)
        return self._old(path, 0, size)

    def _bytes(self, path: str) -> int | None:
        with opened(self.data, path, writes=False) as handle:
            return None if handle is None else os.fstat(handle).st_size

    def _old(self, path: str, at: int, bytes_: int) -> bytes:
        with opened(self.data, path, writes=False) as handle:
            return b"" if handle is None else os.pread(handle, bytes_, at)


def _runs(places: Sequence[int]) -> Iterator[tuple[int, int]]:
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


def _lsns(pages: bytes, size: int) -> tuple[str | None, ...]:
    """Of each page; None: it has none."""
    places = (_lsn_at(pages, at) for at in range(0, len(pages), size))
    return tuple(lsn_text(place) if place else None for place in places)


def _lsn_at(pages: bytes, at: int) -> int:
    """Of the page that begins there: two numbers of 32 bits, the higher one first."""
    high, low = pages[at : at + 4], pages[at + 4 : at + 8]
    return int.from_bytes(high, "little") << 32 | int.from_bytes(low, "little")
