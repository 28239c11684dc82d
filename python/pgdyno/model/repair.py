"""Torn pages repaired from a copy: what redo needs, and what was done, in words of the core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pgdyno.model.wal import WalEnd

SESSIONS = 4
"""That fetch pages or files side by side."""
PATIENCE_S = 60.0
"""For a standby that makes no progress."""


@dataclass(frozen=True, slots=True)
class RedoBegin:
    """What a cluster that is not running says of itself, and where its redo begins."""

    major: int
    system_identifier: str
    state: str  # as pg_controldata says it
    is_shut_down: bool  # in good order: no redo is needed
    is_standby: bool
    redo_lsn: str
    checkpoint_lsn: str  # that redo begins with
    timeline: int  # that redo follows
    has_checksums: bool
    logs_hints: bool  # wal_log_hints
    wal_level: int  # 0: minimal, 1: replica, 2: logical
    block_bytes: int
    segment_blocks: int  # of a file of a relation
    wal_segment_bytes: int


@dataclass(frozen=True, slots=True)
class NeededFile:
    """Blocks of a file that redo reads, so that they have to be whole."""

    path: str  # below the data directory
    fork: str  # "main", "fsm", "vm", "init"
    first_block: int  # of the file, within its fork
    runs: tuple[tuple[int, int], ...]  # ascending: first block within the fork, and how many


@dataclass(frozen=True, slots=True)
class RedoNeeds:
    """What redo needs of a disk."""

    version: int  # of this shape
    end_lsn: str  # of the last record: here redo will end
    ended: WalEnd
    records: int
    wal_bytes: int
    blocks_image: int  # first touched by an image
    blocks_init: int  # first made anew
    blocks: int  # that redo reads
    custom_managers: tuple[str, ...]  # of extensions: what their records change is not known
    files: tuple[NeededFile, ...]


RepairOutcome: TypeAlias = Literal[
    "not needed", "nothing torn", "would repair", "would finish", "repaired", "finished"
]
"""The cluster was shut down; no block differs; dry runs: of a repair, and where an earlier one was
broken off; done; an earlier repair was finished."""


@dataclass(frozen=True, slots=True)
class RepairReport:
    """What a repair found and did."""

    outcome: RepairOutcome
    begin: RedoBegin
    end_lsn: str | None  # of WAL; None: no redo is needed
    blocks_needed: int  # that redo reads
    blocks_absent: int  # of these, that the disk does not have: redo makes them, or needs them not
    blocks_zeroed: int  # that the standby has no more
    blocks_alike: int  # that were as the standby has them
    blocks_written: int
    fetched_bytes: int
    wal_s: float  # reading WAL
    standby_s: float  # until the standby had replayed what is needed
    fetch_s: float
    write_s: float
    journal: str | None  # folder of old and new bytes; None: nothing was to be written

    @property
    def took_s(self) -> float:
        """All of it."""
        return self.wal_s + self.standby_s + self.fetch_s + self.write_s


RejoinOutcome: TypeAlias = Literal["would rejoin", "would finish", "rejoined", "finished"]
"""Dry runs: of a rejoin, and where an earlier one was broken off; done; what an earlier call had
written down was carried out."""


@dataclass(frozen=True, slots=True)
class RejoinReport:
    """What it took to make a crashed cluster a standby of a running primary."""

    outcome: RejoinOutcome
    begin: RedoBegin  # of the crashed cluster
    end_lsn: str | None  # of its WAL; None: it was not read
    fork_lsn: str | None  # where the primary's timeline left its; None: it is the same one
    timeline: int  # of the primary
    backup_lsn: str  # redo of the rejoined cluster begins here, in the primary's WAL
    whole: bool  # every file was copied, whatever WAL says
    blocks_named: int  # of tables and indexes, by the WAL of either since they were alike
    blocks_written: int  # of these and of new ones, that differed
    files_copied: int  # written otherwise: the primary's alone, maps, transaction states, WAL
    files_removed: int  # that the primary does not have
    slots: tuple[str, ...]  # of the crashed cluster, that are no more
    fetched_bytes: int
    took_s: float
    journal: str | None  # folder of old and new bytes; None: a dry run made none
