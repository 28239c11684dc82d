"""What the WAL of a stage's windows was made of: all windows that were read, together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgdyno.analysis.wal_facts import StageWal, WalPart, WalShares, WalTransactions
from pgdyno.model.run import TrialRecord
from pgdyno.model.wal import (
    NOTHING_WRITTEN,
    TransactionUse,
    WindowTransactions,
    WindowWal,
    WorkloadKind,
)


def stage_wal(stages: Sequence[str], trials: Sequence[TrialRecord]) -> tuple[StageWal, ...]:
    """Of each stage of which any window was read and holds a commit.

    Args:
        stages: Their names, in the order of the plan.
        trials: Those whose numbers may be used.
    """
    found = (
        _of(name, [one.result.wal for one in trials
                   if one.stage == name and one.result and one.result.wal])
        for name in stages
    )  # fmt: skip
    return tuple(one for one in found if one is not None)


def _of(stage: str, windows: Sequence[WindowWal]) -> StageWal | None:
    commits = sum(one.commits for one in windows)
    if not commits:
        return None
    whole = sum(one.bytes / one.share for one in windows if one.share)
    read = sum(one.bytes for one in windows)
    record_bytes = sum(one.record_bytes for one in windows)
    return StageWal(
        stage, len(windows), read / whole if whole else 0.0, commits, read / commits,
        sum(one.records for one in windows) / commits,
        sum(one.images for one in windows) / commits,
        sum(one.image_bytes for one in windows) / record_bytes if record_bytes else 0.0,
        _parts(((f"{kind.manager} {kind.kind}", kind.bytes, kind.records, kind.images,
                 kind.image_bytes) for one in windows for kind in one.kinds), commits),
        _parts(((of.name, of.bytes, of.records, of.images, of.image_bytes)
                for one in windows for of in one.relations), commits),
        *_transactions([one.transactions for one in windows if one.transactions]),
    )  # fmt: skip


def _transactions(
    windows: Sequence[WindowTransactions],
) -> tuple[tuple[WalTransactions, ...], WalShares | None]:
    """Of the same tables together, most bytes first; and what is of none of them."""
    committed: dict[tuple[str, ...], tuple[WorkloadKind, TransactionUse]] = {}
    for window in windows:
        for kind in window.committed:
            first, before = committed.get(kind.tables, (kind, NOTHING_WRITTEN))
            committed[kind.tables] = (first, before + kind.used)
    further = sum(one.further.bytes for one in windows)
    rolled_back = sum(one.rolled_back.bytes for one in windows)
    unfinished = sum(one.unfinished.bytes for one in windows)
    outside = sum(one.outside.bytes for one in windows)
    known = sum(used.bytes for _, used in committed.values())
    whole = known + further + rolled_back + unfinished + outside
    if not whole:
        return (), None
    order = sorted(committed.values(), key=lambda one: (-one[1].bytes, one[0].tables))
    return (
        tuple(_kind(kind, used, whole) for kind, used in order),
        WalShares(further / whole, rolled_back / whole, unfinished / whole, outside / whole),
    )


def _kind(kind: WorkloadKind, used: TransactionUse, whole: int) -> WalTransactions:
    count = used.transactions
    return WalTransactions(
        kind.kinds, kind.tables, count, used.bytes / count, used.records / count,
        used.images / count, used.image_bytes / count, used.bytes / whole,
    )  # fmt: skip


def _parts(counted: Iterable[tuple[str, int, int, int, int]], commits: int) -> tuple[WalPart, ...]:
    """Of one name together, most bytes first."""
    sums: dict[str, list[int]] = {}
    for name, *counts in counted:
        before = sums.get(name, [0] * len(counts))
        sums[name] = [one + more for one, more in zip(before, counts, strict=True)]
    parts = (WalPart(name, *(one / commits for one in counts)) for name, counts in sums.items())
    return tuple(sorted(parts, key=lambda one: (-one.bytes, one.name)))
