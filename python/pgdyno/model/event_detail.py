"""What a server's log says of an event, as a record of a run file."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class EventDetail:
    """What the server's log says of something that happened, as far as its version says it."""

    cause: str | None = None  # of a checkpoint or restartpoint, from here on
    buffers: int | None = None  # that it wrote
    write_s: float | None = None
    sync_s: float | None = None
    total_s: float | None = None
    longest_s: float | None = None  # flush of one file
    distance_bytes: int | None = None  # of WAL since the checkpoint before
    wal_added: int | None = None  # segments, as the next two
    wal_removed: int | None = None
    wal_recycled: int | None = None
    table: str | None = None  # of a vacuum or analyze, from here on
    wal_fpi: int | None = None
    wal_bytes: int | None = None
    cpu_s: float | None = None
    wal_records: int | None = None
    buffers_hit: int | None = None
    buffers_read: int | None = None  # that were not in shared_buffers: up to 17 called misses
    buffers_dirtied: int | None = None
    unremovable_rows: int | None = None  # dead, and kept since a transaction may still see them
    lock: str | None = None  # that was waited for, e.g. "ShareLock on transaction 4711"
    file_bytes: int | None = None  # of a temporary file
    replayed_bytes: int | None = None  # of WAL, in a recovery
    text: str | None = None  # of an error, with its level

    def known(self) -> dict[str, str | float]:
        """What is said, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}
