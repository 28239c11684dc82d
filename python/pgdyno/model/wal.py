"""What a range of WAL was made of: records of the words of the core."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WalKind:
    """Records of a kind, e.g. `Heap INSERT`."""

    manager: str
    kind: str
    records: int
    bytes: int  # images included
    images: int
    image_bytes: int


@dataclass(frozen=True, slots=True)
class RelationPlace:
    """A relation, which WAL knows by its files only."""

    tablespace: int
    database: int  # 0: shared by all
    relfilenode: int

    @property
    def name(self) -> str:
        """As `pg_waldump` names it: tablespace, database, relfilenode."""
        return f"{self.tablespace}/{self.database}/{self.relfilenode}"


@dataclass(frozen=True, slots=True)
class WalRelation(RelationPlace):
    """What referred to a relation."""

    records: int
    bytes: int  # its own data and images, and the rest of records whose first block is its
    images: int
    image_bytes: int
    blocks: int  # each counted once


@dataclass(frozen=True, slots=True)
class TransactionUse:
    """What transactions, or records of none, wrote."""

    transactions: int  # subtransactions are a part of theirs
    records: int
    bytes: int  # images included
    images: int
    image_bytes: int

    @property
    def bytes_each(self) -> float | None:
        """Of one transaction; None: there is none."""
        return self.bytes / self.transactions if self.transactions else None

    @property
    def images_each(self) -> float | None:
        """Of one transaction; None: there is none."""
        return self.images / self.transactions if self.transactions else None

    def __add__(self, other: TransactionUse) -> TransactionUse:
        """Of both."""
        return TransactionUse(
            self.transactions + other.transactions, self.records + other.records,
            self.bytes + other.bytes, self.images + other.images,
            self.image_bytes + other.image_bytes,
        )  # fmt: skip


NOTHING_WRITTEN = TransactionUse(0, 0, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class TransactionKind:
    """Committed transactions that changed rows of the same tables."""

    tables: tuple[RelationPlace, ...]  # ascending; none: rows of no table were changed
    used: TransactionUse


@dataclass(frozen=True, slots=True)
class TransactionSums:
    """All records of a range, by what became of their transactions: each is in one of these."""

    committed: tuple[TransactionKind, ...]  # most bytes first
    further: TransactionUse  # committed, of more sets of tables than are told apart
    rolled_back: TransactionUse
    unfinished: TransactionUse  # by the end of the range
    outside: TransactionUse  # of no transaction: checkpoints, vacuum


@dataclass(frozen=True, slots=True)
class WalEnd:
    """Where valid WAL ended."""

    file: str
    lsn: str
    why: str


@dataclass(frozen=True, slots=True)
class WalSummary:
    """What a range of WAL was made of."""

    version: int  # of this shape
    major: int
    system_identifier: str
    segment_bytes: int
    timeline: int  # of the last page
    from_lsn: str
    to_lsn: str
    first_lsn: str | None  # begin of the first record; None: there was none
    end_lsn: str  # of the last record
    bytes: int  # from the one to the other, with headers of pages and what switches left empty
    records: int
    record_bytes: int
    images: int
    image_bytes: int
    commits: int
    aborts: int
    blocks_image: int  # blocks whose first touch was an image
    blocks_init: int  # made anew
    blocks_plain: int  # changed without image: what a torn page would break
    overwritten: int  # records that a crash cut
    kinds: tuple[WalKind, ...]  # most bytes first
    relations: tuple[WalRelation, ...]
    transactions: TransactionSums
    ended: WalEnd | None  # None: the range ended first

    def share(self, bytes_: int) -> float:
        """The part that so many bytes are of all records' bytes, 0 to 1."""
        return bytes_ / self.record_bytes if self.record_bytes else 0.0

    @property
    def bytes_per_commit(self) -> float | None:
        """Bytes of WAL for each transaction that committed; None: none did."""
        return self.bytes / self.commits if self.commits else None


@dataclass(frozen=True, slots=True)
class WalBlock:
    """A block that a record refers to."""

    id: int
    tablespace: int
    database: int
    relfilenode: int
    fork: str  # "main", "fsm", "vm", "init"
    block: int
    data_bytes: int
    is_init: bool
    image_bytes: int | None  # None: no image
    is_applied: bool  # replay puts the image in place
    hole_at: int
    hole_bytes: int
    compression: str | None  # "pglz", "lz4", "zstd"; None: not compressed


@dataclass(frozen=True, slots=True)
class WalRecord:
    """A record."""

    lsn: str
    prev_lsn: str
    manager: str
    kind: str
    xid: int  # 0: none
    bytes: int
    image_bytes: int
    blocks: tuple[WalBlock, ...]


@dataclass(frozen=True, slots=True)
class WalPart:
    """What a segment held of a range."""

    done: bool
    records: tuple[WalRecord, ...]  # where they were asked for


@dataclass(frozen=True, slots=True)
class NamedRelation:
    """A relation of which WAL names blocks."""

    tablespace: int
    database: int  # 0: shared by all
    relfilenode: int
    blocks: tuple[int, ...]  # of its main fork, each once, in order


@dataclass(frozen=True, slots=True)
class WalCheckpoint:
    """A checkpoint's record."""

    lsn: str
    is_shutdown: bool  # redo begins at the record itself


@dataclass(frozen=True, slots=True)
class WalNamed:
    """What a range of WAL names."""

    relations: tuple[NamedRelation, ...]
    checkpoints: tuple[WalCheckpoint, ...]  # in their order


@dataclass(frozen=True, slots=True)
class WrittenTo:
    """What the WAL of a window held of one relation."""

    name: str  # with its schema; tablespace/database/relfilenode where nothing has these files now
    records: int
    bytes: int  # as of `WalRelation`
    images: int
    image_bytes: int


@dataclass(frozen=True, slots=True)
class WorkloadKind:
    """Committed transactions of a window that changed rows of the same tables."""

    tables: tuple[str, ...]  # ascending; partitions by their root, TOAST by its table
    kinds: tuple[str, ...]  # of the workload's, those that change these tables; none: none does
    used: TransactionUse


@dataclass(frozen=True, slots=True)
class WindowTransactions:
    """All records of a window, by what became of their transactions."""

    committed: tuple[WorkloadKind, ...]  # the largest, most bytes first
    further: TransactionUse  # committed, of all other sets of tables
    rolled_back: TransactionUse
    unfinished: TransactionUse  # by the end of the window
    outside: TransactionUse  # of no transaction


@dataclass(frozen=True, slots=True)
class WindowWal:
    """What the WAL of a trial's window was made of, as it lay in its segments afterwards."""

    share: float  # of the window's WAL that was still there, its end: 0 to 1
    bytes: int  # of this part, with headers of pages and what switches left empty
    records: int
    record_bytes: int
    images: int
    image_bytes: int
    commits: int
    kinds: tuple[WalKind, ...]  # most bytes first
    relations: tuple[WrittenTo, ...]  # the largest, most bytes first
    transactions: WindowTransactions | None = None  # None: of a run that did not tell them
