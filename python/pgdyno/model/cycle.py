"""Checkpoint cycles: how a protocol follows them, and what a trial saw of them.

A cycle runs from one checkpoint's start to the next one's. It ends by time, after
`checkpoint_timeout`, or by WAL, after `max_wal_size` / (1 + `checkpoint_completion_target`) of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Checkpoints = Literal["ignore", "cycles", "anchors"]

ANCHOR_CYCLES = 1.3
"""An anchor lasts so many cycles: the first one, and as much of the second as tells the writes."""

WARM_CYCLES = 2
"""Cycles before a window of whole ones: the first writes nothing of one before, so that the second
writes more than those to come; what is left of that swing is small (tests/method)."""

SHORT_CYCLE_S = 100.0
"""Stages with shorter cycles have no use for anchors: their windows hold whole cycles."""


@dataclass(frozen=True, slots=True)
class Spacing:
    """The settings that space the checkpoints of a server, as it has them."""

    timeout_s: float  # checkpoint_timeout
    max_wal_bytes: float  # max_wal_size
    completion_target: float  # checkpoint_completion_target

    def cycle_s(self, wal_bytes_per_s: float) -> float:
        """How long a cycle lasts at this rate of WAL.

        Source: `CalculateCheckpointSegments` and `CheckpointerMain` of PostgreSQL 11 to 18.
        """
        if wal_bytes_per_s <= 0:
            return self.timeout_s
        by_wal = self.max_wal_bytes / (1 + self.completion_target) / wal_bytes_per_s
        return min(self.timeout_s, by_wal)


@dataclass(frozen=True, slots=True)
class Followed:
    """How a trial followed the checkpoints of its server."""

    cycles: int | None  # whole ones asked for in the window; None: an anchor
    begins_ns: tuple[int, ...]  # when begins were noticed while the load ran
    load_ns: tuple[int, int]  # start of the warm-up, end of the window
    spacing: Spacing
