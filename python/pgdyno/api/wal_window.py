"""What a window's WAL was made of, from its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pgdyno.api.interrupts import interruptible
from pgdyno.api.notebook_line import with_line
from pgdyno.model.bounds import require_within
from pgdyno.model.wal import WalSummary
from pgdyno.pages.wal import WalRange, read_wal


@with_line
def wal(
    folder: str | Path = ".",
    from_lsn: str | None = None,
    to_lsn: str | None = None,
    *,
    timeline: int | None = None,
    on_event: Callable[[str], None] = lambda _: None,
) -> WalSummary:
    """Tell what a range of WAL was made of: by kind of record, relation, images, first touches.

    Places are written as PostgreSQL does, e.g. `16/B374D848`. Each record is in one of two ranges
    that follow each other. While the server runs, name the end, e.g. `pg_current_wal_flush_lsn()`.

    Args:
        folder: A data directory, its `pg_wal`, or an archive.
        from_lsn: Records that begin here or later; None: from the oldest segment on.
        to_lsn: Records that begin before it; None: to the end of valid WAL.
        timeline: The timeline to follow; None: the newest.
        on_event: Told which segment is read.

    Raises:
        PlanError: No timeline has such a number.
        TargetError: It holds no WAL of PostgreSQL 12 to 18, a segment is missing, WAL is damaged.
        Interrupted: Ctrl-C.
    """
    if timeline is not None:
        require_within("timeline", timeline, 1, None, "A cluster begins with timeline 1.")
    wanted = WalRange(from_lsn, to_lsn, timeline)
    with interruptible("stopped", "Nothing was changed."):
        return read_wal(Path(folder), wanted, on_segment=lambda name: on_event(f"segment {name}"))
