"""Latencies counted in buckets of half a percent: of any number of requests in bounded memory."""

from __future__ import annotations

from math import floor, log

from pgdyno.model.imported import Latencies

_WIDTH = 0.005  # of a bucket, as a share of its lower edge
_STEP = log(1 + _WIDTH)


class Buckets:
    """Counts of latencies in microseconds."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._index: dict[float, int] = {}  # of latencies seen before: most repeat
        self.total = 0

    def add(self, us: float, times: int = 1) -> None:
        """Count a latency; below a microsecond it is 0."""
        index = self._index.get(us)
        if index is None:
            index = floor(log(us) / _STEP) if us >= 1 else -1
            if len(self._index) < 100_000:
                self._index[us] = index
        self._counts[index] = self._counts.get(index, 0) + times
        self.total += times

    def latencies(self, width: float = _WIDTH) -> Latencies | None:
        """What was counted; None if nothing was.

        Args:
            width: Of the buckets that the latencies were in before, if it is more.
        """
        if not self.total:
            return None
        indexes = sorted(self._counts)
        edges = tuple((1 + _WIDTH) ** index if index >= 0 else 0.0 for index in indexes)
        return Latencies(edges, tuple(self._counts[one] for one in indexes), width)


def percentile(latencies: Latencies, share: float) -> float:
    """The latency, microseconds, that a share of all requests did not exceed: its bucket's edge."""
    total = sum(latencies.counts)
    below = 0
    for edge, count in zip(latencies.lower_us, latencies.counts, strict=True):
        below += count
        if below >= share * total:
            return edge
    return latencies.lower_us[-1]
