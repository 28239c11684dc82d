"""Shares of requests by response time: they sum up to 1, and lie where the times do."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from pgdyno.analysis.latency_shares import EDGES_NS, latency_shares


def shares_of(values_ns: Sequence[float]) -> tuple[float, ...]:
    def quantiles(_: Sequence[str], shares: Sequence[float]) -> list[int]:
        found = np.quantile(values_ns, shares, method="inverted_cdf")
        return [int(value) for value in found]

    return latency_shares("a histogram", quantiles)


def test_two_modes_are_two_bands() -> None:
    shares = shares_of([2_000_000] * 700 + [30_000_000] * 300)

    used = {place: share for place, share in enumerate(shares) if share}
    assert sum(shares) == pytest.approx(1, abs=1e-4)
    assert list(used.values()) == pytest.approx([0.7, 0.3], abs=0.002)
    for place, value in zip(used, (2_000_000, 30_000_000), strict=True):
        assert EDGES_NS[place] <= value < EDGES_NS[place + 1]


def test_what_lies_beyond_the_scale_counts_at_its_ends() -> None:
    shares = shares_of([1_000] * 400 + [500_000_000_000] * 600)

    assert shares[0] == pytest.approx(0.4, abs=0.002)
    assert shares[-1] == pytest.approx(0.6, abs=0.002)
    assert len(shares) == len(EDGES_NS) - 1


def test_one_slow_request_in_ten_thousand_is_seen() -> None:
    shares = shares_of([1_000_000] * 9_999 + [90_000_000])

    assert sum(one > 0 for one in shares) == 2
