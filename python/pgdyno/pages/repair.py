"""Pages of a copy, judged by the core before they take the place of pages that may be torn."""

from __future__ import annotations

import json
from typing import NamedTuple

from pgdyno import core
from pgdyno.core import fact_and_hint
from pgdyno.model.errors import TargetError


class JudgedPages(NamedTuple):
    """What became of pages of a copy."""

    pages: bytes  # that take the place of those on the crashed cluster's disk
    unsound: list[int]  # blocks whose checksum is wrong: nothing else counts if there are any
    lsns: list[str | None]  # of each page; None: it becomes zeroes


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
        self._block_bytes = block_bytes
        self._core = core.PageJudge(json.dumps({
            "block_bytes": block_bytes, "end_lsn": end_lsn,
            "source_has_checksums": source_has_checksums, "has_checksums": has_checksums,
        }))  # fmt: skip

    def judged(self, path: str, first_block: int, source: bytes, target: bytes) -> JudgedPages:
        """The pages that take the place of those on the crashed cluster's disk.

        Args:
            path: Their file, below the data directory.
            first_block: Within the fork; the others follow it.
            source: The copy's, as long as it has them.
            target: The crashed cluster's.

        Raises:
            TargetError: A page of either is newer than the WAL's end, or is none.
        """
        try:
            return JudgedPages(*self._core.judged(path, first_block, source, target))
        except core.CoreError as error:
            raise TargetError(*fact_and_hint(error)) from error

    def unsound(self, path: str, first_block: int, blocks: int, source: bytes) -> list[int]:
        """Which of so many pages of a copy are not whole by their checksums.

        Raises:
            TargetError: As `judged`.
        """
        target = bytes(blocks * self._block_bytes)
        return self.judged(path, first_block, source, target).unsound
