"""What the WAL of a stage's windows was made of: all windows that were read, together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pgdyno.analysis.wal_facts import StageWal, WalPart
from pgdyno.model.run import TrialRecord
from pgdyno.model.wal import WindowWal


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
    )  # fmt: skip


def _parts(counted: Iterable[tuple[str, int, int, int, int]], commits: int) -> tuple[WalPart, ...]:
    """Of one name together, most bytes first."""
    sums: dict[str, list[int]] = {}
    for name, *counts in counted:
        before = sums.get(name, [0] * len(counts))
        sums[name] = [one + more for one, more in zip(before, counts, strict=True)]
    parts = (WalPart(name, *(one / commits for one in counts)) for name, counts in sums.items())
    return tuple(sorted(parts, key=lambda one: (-one.bytes, one.name)))
