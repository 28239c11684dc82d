"""How far a replica that answers reads is behind its primary, in bytes of WAL and in seconds.

`replica.behind_bytes`: from what it has replayed to what the primary has put into its WAL, as it
stood right after; so it is never told too small. Not to what is written: with synchronous_commit =
off commits are answered that lie in WAL buffers. `replica.lag_s`: how long ago the primary was last
where the replica is now, by this host's clock alone: clocks of servers may differ. Both four times
a second; between two looks at the primary its position is taken to have grown evenly. Where these
are too far apart, or it was there before the first of them, it is not known how long ago that was:
`replica.lag_at_least_s` has the least that it can have been, and `replica.lag_s` no sample. What
was seen of the primary is kept while a session is lost and opened anew.
"""

from __future__ import annotations

import time

from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_COLUMNS = (
    Column("replica.behind_bytes", "B", "gauge"),
    Column("replica.lag_s", "s", "gauge"),
    Column("replica.lag_at_least_s", "s", "gauge"),
)
_INTERVAL_S = 0.25
_INSERTED = "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::int8"
_REPLAYED = "SELECT pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::int8"
_SIZES = """
SELECT current_setting('wal_block_size')::int8,
       pg_size_bytes(current_setting('wal_segment_size'))
"""
_HEADER_BYTES, _FIRST_HEADER_BYTES = 24, 40  # of a page of WAL, and of the first one of a segment


def end_of_wal(inserted: int, page_bytes: int, segment_bytes: int) -> int:
    """Where the last record ends, which is where a replica that has replayed all of it is.

    The next one is inserted there, but behind the header of a page on which nothing stands yet.

    Args:
        inserted: Where the next record is inserted, as a number of bytes.
        page_bytes: Of a page of WAL.
        segment_bytes: Of a file of WAL.
    """
    is_first = inserted % segment_bytes < page_bytes
    header = _FIRST_HEADER_BYTES if is_first else _HEADER_BYTES
    return inserted - header if inserted % page_bytes == header else inserted


def sampler(subject: Subject) -> Sampler | None:
    """None where no replica answers."""
    if (replica := subject.replica) is None:
        return None
    inserted, replayed = (
        Prepared(session, text)
        for session, text in ((replica.primary, _INSERTED), (replica.session, _REPLAYED))
    )
    page_bytes, segment_bytes = Prepared(replica.primary, _SIZES).row()
    positions = replica.positions

    def primary() -> int:
        return end_of_wal(int(inserted.row()[0]), int(page_bytes), int(segment_bytes))

    positions.add(time.monotonic(), primary())

    def take() -> Row:
        there = int(replayed.row()[0])
        now_s = time.monotonic()
        here = primary()
        positions.add(time.monotonic(), here)
        lag = positions.lag(now_s, there)
        told = "replica.lag_s" if lag.is_exact else "replica.lag_at_least_s"
        return {"replica.behind_bytes": float(max(0, here - there)), told: lag.seconds}

    return Sampler("replica", _COLUMNS, take, _INTERVAL_S)
