"""How far a replica that answers reads is behind its primary, in bytes of WAL and in seconds.

`replica.behind_bytes`: from what it has replayed to what the primary has put into its WAL, as it
stood right after; so it is never told too small. Not to what is written: with synchronous_commit =
off commits are answered that lie in WAL buffers. `replica.lag_s`: how long ago the primary was last
where the replica is now, by this host's clock alone: clocks of servers may differ. Both four times
a second; between two looks at the primary its position is taken to have grown evenly, unless these
are too far apart: how long ago it was where the replica is, is not known then, and not told.
"""

from __future__ import annotations

import time
from bisect import bisect_right

from pgdyno.model.sampler_gaps import APART_S
from pgdyno.sample.prepared import Prepared
from pgdyno.sample.sampler import Column, Row, Sampler, Subject

_COLUMNS = (
    Column("replica.behind_bytes", "B", "gauge"),
    Column("replica.lag_s", "s", "gauge"),
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


class Positions:
    """Where the primary was at which time."""

    def __init__(self) -> None:
        self._times_s: list[float] = []
        self._bytes: list[int] = []

    def add(self, at_s: float, end: int) -> None:
        """It was there then. If it went back, as in a crash, what was before tells nothing."""
        if self._bytes and end < self._bytes[-1]:
            self._times_s.clear()
            self._bytes.clear()
        self._times_s.append(at_s)
        self._bytes.append(end)

    def lag_s(self, now_s: float, replayed: int) -> float | None:
        """How long ago the primary was last there; at least, if that was before the first look.

        Returns:
            None where nobody looked when it was.
        """
        place = bisect_right(self._bytes, replayed)
        if place == len(self._bytes):
            return 0.0  # as far as the primary when it was last looked at
        if place == 0:
            return max(0.0, now_s - self._times_s[0])
        if self._times_s[place] - self._times_s[place - 1] > APART_S:
            return None
        before, after = self._bytes[place - 1], self._bytes[place]
        share = (replayed - before) / (after - before)
        then_s = self._times_s[place - 1]
        return max(0.0, now_s - (then_s + share * (self._times_s[place] - then_s)))


def sampler(subject: Subject) -> Sampler | None:
    """None where no replica answers."""
    if (replica := subject.replica) is None:
        return None
    inserted, replayed = (
        Prepared(session, text)
        for session, text in ((replica.primary, _INSERTED), (replica.session, _REPLAYED))
    )
    page_bytes, segment_bytes = Prepared(replica.primary, _SIZES).row()
    positions = Positions()

    def primary() -> int:
        return end_of_wal(int(inserted.row()[0]), int(page_bytes), int(segment_bytes))

    positions.add(time.monotonic(), primary())

    def take() -> Row:
        there = int(replayed.row()[0])
        now_s = time.monotonic()
        here = primary()
        positions.add(time.monotonic(), here)
        row: Row = {"replica.behind_bytes": float(max(0, here - there))}
        lag_s = positions.lag_s(now_s, there)
        return row if lag_s is None else row | {"replica.lag_s": lag_s}

    return Sampler("replica", _COLUMNS, take, _INTERVAL_S)
