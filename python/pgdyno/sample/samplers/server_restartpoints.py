"""Restartpoints of a replica that answers reads: its checkpointer writes beside them.

`timed` and `requested` count tries: one for which no new checkpoint of the primary has been
replayed does nothing. `done` is told by 17 and later. Before 17 a standby counts its restartpoints
as checkpoints; it makes none of these.

Source: PostgreSQL, "The Cumulative Statistics System", pg_stat_checkpointer, pg_stat_bgwriter.
"""

from __future__ import annotations

from pgdyno.sample.lacking import major_of, not_before
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Found, Row, Sampler, Subject

_SINCE = 17  # a view of their own
_COUNTERS = (
    (Column("restartpoints.timed", "1"), "checkpoints_timed", "restartpoints_timed"),
    (Column("restartpoints.requested", "1"), "checkpoints_req", "restartpoints_req"),
    (Column("restartpoints.done", "1"), "", "restartpoints_done"),
    (Column("restartpoints.buffers", "1"), "buffers_checkpoint", "buffers_written"),
    (Column("restartpoints.write_s", "s"), "checkpoint_write_time / 1000", "write_time / 1000"),
    (Column("restartpoints.sync_s", "s"), "checkpoint_sync_time / 1000", "sync_time / 1000"),
)  # what 12 to 16 and what 17 and later call them


def query(major: int) -> tuple[str, tuple[Column, ...]]:
    """One statement that reads everything, and its columns in order."""
    view = "pg_stat_checkpointer" if major >= _SINCE else "pg_stat_bgwriter"
    told = [
        (column, now if major >= _SINCE else before)
        for column, before, now in _COUNTERS
        if before or major >= _SINCE
    ]
    values = ", ".join(f"({text})::float8" for _, text in told)
    return f"SELECT {values} FROM {view}", tuple(column for column, _ in told)  # noqa: S608


def sampler(subject: Subject) -> Found:
    """Counters of the replica's checkpointer; None where no replica answers."""
    if subject.replica is None:
        return None
    session = subject.replica.session
    major = major_of(session)
    text, columns = query(major)
    prepared = Prepared(session, text)

    def take() -> Row:
        values = zip(columns, prepared.row(), strict=True)
        return {column.name: value for column, value in values}

    found = Sampler("restartpoints", columns, take)
    if major >= _SINCE:
        return found
    return [found, not_before("the server's count of completed restartpoints", major, _SINCE)]
