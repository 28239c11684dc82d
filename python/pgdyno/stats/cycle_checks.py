"""Where an anchor does not tell what a whole cycle does; each check answers with its reason.

What is found invalid here must be measured with windows of whole cycles instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pgdyno.model.units import bytes_text
from pgdyno.stats.anchor import Anchor

BACKEND_SHARE_MAX = 0.05
LONG_MAX = 1.1  # of what the completion target gives a checkpoint
SYNC_SHARE_MAX = 0.10
CYCLE_SPREAD_MAX = 0.15
BEHIND_SHARE_MAX = 0.10
SEGMENT_BYTES = 16 << 20  # of WAL, unless initdb was told otherwise: one is always under way


@dataclass(frozen=True, slots=True)
class Ended:
    """A spread checkpoint that has ended, as the log tells it."""

    total_s: float
    sync_s: float
    cycle_s: float  # from its begin to the next one's


def backends_write(backends: float, checkpointer: float, writer: float) -> str | None:
    """Sessions that must write pages themselves: the changed pages do not fit the cache."""
    total = backends + checkpointer + writer
    if total <= 0 or backends / total <= BACKEND_SHARE_MAX:
        return None
    return (
        f"sessions wrote {backends / total:.0%} of the pages themselves, at most"
        f" {BACKEND_SHARE_MAX:.0%} is allowed: what is dirty exceeds shared_buffers"
    )


def saturated(checkpoints: Sequence[Ended], target: float) -> str | None:
    """Checkpoints that the storage cannot take in the time they have."""
    for one in checkpoints:
        allowed_s = LONG_MAX * target * one.cycle_s
        if one.total_s > allowed_s:
            return (
                f"a checkpoint took {one.total_s:.0f} s, {allowed_s:.0f} s are its share of a cycle"
            )
        if one.total_s > 0 and one.sync_s / one.total_s > SYNC_SHARE_MAX:
            return (
                f"a checkpoint spent {one.sync_s / one.total_s:.0%} of its time in flushes, at most"
                f" {SYNC_SHARE_MAX:.0%} is allowed: the storage cannot keep up"
            )
    return None


def drifting(anchors: Sequence[Anchor]) -> str | None:
    """What the writes cost changes while they last, so that their rest is not known."""
    worst = max(anchors, key=lambda one: abs(one.drift), default=None)
    if worst is None or not any(one.drifts for one in anchors):
        return None
    return (
        f"what a checkpoint's writes cost drifts by {worst.drift:+.0%} within the part of the"
        " second cycle that an anchor holds"
    )


def unequal_cycles(cycles_s: Sequence[float]) -> str | None:
    """Anchors of one stage whose cycles have different lengths."""
    if len(cycles_s) < 2 or max(cycles_s) <= (1 + CYCLE_SPREAD_MAX) * min(cycles_s):
        return None
    return (
        f"its cycles lasted {min(cycles_s):.0f} to {max(cycles_s):.0f} s, more than"
        f" {CYCLE_SPREAD_MAX:.0%} apart"
    )


def late_vacuum(tables: Sequence[str]) -> str | None:
    """Autovacuum that begins after the first cycle: one cycle is not the period."""
    if not tables:
        return None
    return f"autovacuum of {', '.join(tables)} began only after the first cycle"


def falling_behind(what: str, growth_bytes: float, written_bytes: float) -> str | None:
    """Archiving, or a standby, that takes less than is written: the rest is paid after the trial.

    Args:
        what: Which of them.
        growth_bytes: By how much WAL it fell further behind while an anchor was driven.
        written_bytes: WAL that was written meanwhile.
    """
    if growth_bytes <= max(SEGMENT_BYTES, BEHIND_SHARE_MAX * written_bytes):
        return None
    return (
        f"{what} fell behind by {bytes_text(growth_bytes)} of the {bytes_text(written_bytes)} of"
        f" WAL of an anchor, at most {BEHIND_SHARE_MAX:.0%} is allowed"
    )
