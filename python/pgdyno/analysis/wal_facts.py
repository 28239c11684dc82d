"""What a report says of the WAL of windows, as records; `analysis.wal` makes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WalPart:
    """Records of a kind, or of a relation, by committed transaction."""

    name: str  # e.g. "Heap INSERT", "order_line"
    bytes: float  # images included
    records: float
    images: float
    image_bytes: float


@dataclass(frozen=True, slots=True)
class WalTransactions:
    """Committed transactions that changed rows of the same tables; figures are of one of them."""

    kinds: tuple[str, ...]  # of the workload's; none: none changes these tables
    tables: tuple[str, ...]  # none: rows of no table were changed
    commits: int
    bytes: float  # images included
    records: float
    images: float
    image_bytes: float
    share: float  # of the bytes of all records, 0 to 1


@dataclass(frozen=True, slots=True)
class WalShares:
    """What is of no committed transaction of a kind, each of the bytes of all records: 0 to 1."""

    further: float  # committed, of all other sets of tables
    rolled_back: float
    unfinished: float  # by the end of the window
    outside: float  # of no transaction


@dataclass(frozen=True, slots=True)
class StageWal:
    """The WAL of a stage's windows, by committed transaction."""

    stage: str
    windows: int  # that were read
    share: float  # of their WAL that was still there when it was read: 0 to 1
    commits: int  # in it
    bytes: float
    records: float
    images: float
    image_share: float  # of the bytes of records, 0 to 1
    kinds: tuple[WalPart, ...]  # most bytes first
    relations: tuple[WalPart, ...]  # the largest
    transactions: tuple[WalTransactions, ...] = ()  # the largest; none: no window told them
    others: WalShares | None = None
