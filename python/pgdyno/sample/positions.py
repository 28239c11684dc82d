"""Where a primary's WAL ended at which time, by which a replica's lag is told."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from pgdyno.model.sampler_gaps import APART_S


class Lag(NamedTuple):
    """How long ago the primary was last where its replica is."""

    seconds: float
    is_exact: bool  # else it was longer ago: nobody looked at the primary when it was there


class Positions:
    """Where the primary was at which time; kept while sessions are lost and opened anew."""

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

    def lag(self, now_s: float, replayed: int) -> Lag:
        """How long ago the primary was last there; at least, if nobody looked when it was.

        Args:
            now_s: When the replica was there.
            replayed: Where that is.
        """
        place = bisect_right(self._bytes, replayed)
        if place == len(self._bytes):
            return Lag(0.0, is_exact=True)  # as far as the primary when it was last looked at
        after_s = self._times_s[place]
        if place == 0 or after_s - self._times_s[place - 1] > APART_S:
            return Lag(max(0.0, now_s - after_s), is_exact=False)
        before, after = self._bytes[place - 1], self._bytes[place]
        share = (replayed - before) / (after - before)
        then_s = self._times_s[place - 1]
        return Lag(max(0.0, now_s - (then_s + share * (after_s - then_s))), is_exact=True)
