"""Which blocks WAL names, and what in it makes that not enough: for a copy of what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgdyno.model.errors import TargetError
from pgdyno.model.lsn import lsn_of
from pgdyno.model.wal import NamedRelation, WalKind, WalNamed
from pgdyno.pages.wal import WalRange, read_wal

_DEFAULT, _GLOBAL = 1663, 1664  # pg_default, pg_global
_COPIED = ("CREATE", "CREATE_FILE_COPY")  # a database whose blocks no record names
_CUSTOM = "custom"  # what the core calls resource managers of extensions


@dataclass(slots=True)
class BlocksInWal:
    """Blocks of main forks by the path of their first file, and what speaks against them."""

    version: str  # the folder of relations in a tablespace, e.g. PG_18_202506291
    blocks: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    doubts: dict[str, None] = field(default_factory=dict)  # each a fact

    def add(self, relations: Sequence[NamedRelation], kinds: Sequence[WalKind], whose: str) -> None:
        """Take what WAL names.

        Args:
            relations: With their blocks.
            kinds: Of all its records.
            whose: Told in doubts, e.g. `primary`.
        """
        for one in kinds:
            if one.manager == "Database" and one.kind in _COPIED:
                self._doubt(
                    f"the {whose}'s WAL has a database copied, whose blocks it does not name"
                )
            if one.manager.startswith(_CUSTOM):
                self._doubt(f"the {whose}'s WAL has records of an extension ({one.manager})")
        for relation in relations:
            path = self._path(relation.tablespace, relation.database, relation.relfilenode)
            self.blocks[path].update(relation.blocks)

    def _doubt(self, fact: str) -> None:
        self.doubts[fact] = None

    def _path(self, tablespace: int, database: int, relfilenode: int) -> str:
        if tablespace == _GLOBAL:
            return f"global/{relfilenode}"
        if tablespace == _DEFAULT:
            return f"base/{database}/{relfilenode}"
        return f"pg_tblspc/{tablespace}/{self.version}/{database}/{relfilenode}"

    def read(self, path: Path, wanted: WalRange, whose: str) -> str:
        """Take what a range of WAL names; returns where its last record ends.

        Args:
            path: A data directory, or a folder of segments.
            wanted: The range.
            whose: Told in doubts, e.g. `primary`.

        Raises:
            TargetError: A segment is missing, WAL is damaged, or ends before the range does.
        """
        found: list[WalNamed] = []
        summary = read_wal(path, wanted, on_named=found.append)
        self.add(found[0].relations, summary.kinds, whose)
        if wanted.to_lsn is not None and summary.ended is not None:
            raise TargetError(
                f"the {whose}'s WAL ends at {summary.end_lsn}, and is wanted up to {wanted.to_lsn}"
            )
        return summary.end_lsn

    @property
    def count(self) -> int:
        """Of all blocks."""
        return sum(map(len, self.blocks.values()))


def checkpoint_before(path: Path, fork_lsn: str, timeline: int) -> str | None:
    """A place at or before the redo of the last checkpoint that WAL has before a fork.

    The redo of a checkpoint comes after the record of the one before, and is told by neither.

    Args:
        path: The data directory.
        fork_lsn: The record of the checkpoint begins before it.
        timeline: Of the WAL up to there.

    Returns:
        None: WAL does not go back so far.

    Raises:
        TargetError: A segment is missing, or WAL is damaged.
    """
    found: list[WalNamed] = []
    read_wal(path, WalRange(None, fork_lsn, timeline), on_named=found.append)
    checkpoints = found[0].checkpoints
    if checkpoints and checkpoints[-1].is_shutdown:
        return checkpoints[-1].lsn  # its redo is itself
    return checkpoints[-2].lsn if len(checkpoints) > 1 else None


def first_of(places: Sequence[str]) -> str:
    """The one that comes first in WAL."""
    return min(places, key=lsn_of)
