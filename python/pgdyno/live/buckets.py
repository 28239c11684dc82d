"""Histograms of a run file as buckets: how many values are at most as large as each bound."""

from __future__ import annotations

from collections.abc import Sequence

from pgdyno.store.histogram import Quantiles

BOUNDS_NS = tuple(
    round(step * 10**decade) for decade in range(5, 11) for step in (1, 2.5, 5)
)  # fmt: skip
"""0.1 ms to 50 s, three a decade, ns."""


def cumulative(histogram: str, count: int, quantiles: Quantiles) -> tuple[int, ...]:
    """How many of the values are at most as large as each of `BOUNDS_NS`, exactly.

    The k-th smallest value is the quantile at (k - 1/2) of `count`: all bounds are searched at
    once, by halves.

    Args:
        histogram: As `KindResult.response` holds it.
        count: Of its values.
        quantiles: As `store.histogram.merged_quantiles`.
    """
    low, high = [0] * len(BOUNDS_NS), [count] * len(BOUNDS_NS)  # low are, more than high are not
    while any(one < other for one, other in zip(low, high, strict=True)):
        tried = [(one + other + 1) // 2 for one, other in zip(low, high, strict=True)]
        values = _values(histogram, tried, count, quantiles)
        for at, (value, bound) in enumerate(zip(values, BOUNDS_NS, strict=True)):
            if low[at] == high[at]:
                continue
            if value <= bound:
                low[at] = tried[at]
            else:
                high[at] = tried[at] - 1
    return tuple(low)


def _values(histogram: str, ranks: Sequence[int], count: int, quantiles: Quantiles) -> list[int]:
    """The values of these ranks, the smallest is of rank 1."""
    return quantiles([histogram], [max(0.0, rank - 0.5) / count for rank in ranks])
