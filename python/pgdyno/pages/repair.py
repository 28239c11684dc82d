"""Pages of a copy, judged by the core before they take the place of pages that may be torn."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from pgdyno import core
from pgdyno.core import fact_and_hint
from pgdyno.model.errors import TargetError


class PagesAt(NamedTuple):
    """Pages of a file that follow each other."""

    first_block: int  # within the fork
    file_at: int  # bytes into the file
    blocks: int


class Change(NamedTuple):
    """Pages that differ and follow each other."""

    first: int  # counted from the first that was given
    old: bytes
    new: bytes
    lsns: list[str | None]  # of each new page; None: it becomes zeroes


class PageJudge:
    """Judges pages, run after run: a repair may have as many runs as pages."""

    def __init__(
        self, block_bytes: int, end_lsn: str, *, source_has_checksums: bool, has_checksums: bool
    ) -> None:
        """Begin a repair.

        Args:
            block_bytes: Of each page.
            end_lsn: Of the crashed cluster's WAL: no page may be newer.
            source_has_checksums: Whether pages of the copy have checksums.
            has_checksums: Whether those of the crashed cluster have.
        """
        self._core = core.PageJudge(json.dumps({
            "block_bytes": block_bytes, "end_lsn": end_lsn,
            "source_has_checksums": source_has_checksums, "has_checksums": has_checksums,
        }))  # fmt: skip

    def changes(
        self, path: str, handle: int, places: Sequence[PagesAt], sources: Sequence[bytes]
    ) -> list[list[Change] | None]:
        """What of the pages of a crashed cluster's file others take the place of, run by run.

        None: the copy's pages of this run were read while they were written, or are damaged.

        Args:
            path: The file, as errors name it.
            handle: Of it, open to be read.
            places: Of its pages.
            sources: The copy's, one for one, as long as it has them.

        Raises:
            TargetError: A page of either is newer than the WAL's end, or is none; or the file is
                shorter.
        """
        with _refusals():
            found = self._core.changes(path, handle, list(places), list(sources))
        return [None if one is None else [Change(*it) for it in one] for one in found]

    def unsound(self, path: str, first_block: int, source: bytes) -> list[int]:
        """Numbers of those pages of a copy, from a block on, that are not whole by their checksums.

        Raises:
            TargetError: A page is newer than the WAL's end, or is none.
        """
        with _refusals():
            return self._core.unsound(path, first_block, source)

    def differing(self, old: bytes, new: bytes) -> list[tuple[int, int]]:
        """The first of new pages that follow each other and differ, and how many; missing ones do.

        Args:
            old: What a file has; may be shorter.
            new: What takes its place.
        """
        return self._core.differing(old, new)


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except core.CoreError as error:
        raise TargetError(*fact_and_hint(error)) from error
