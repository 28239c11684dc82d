"""Shares of trials that came out one way: exact intervals, also where it was none, or all."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import betaincinv


@dataclass(frozen=True, slots=True)
class Share:
    """`of` of `n`, with its interval."""

    of: int
    n: int
    low: float
    high: float


def share(of: int, n: int, confidence: float = 0.95) -> Share:
    """The exact interval of a share (Clopper and Pearson 1934): never narrower than it says.

    Args:
        of: Trials that came out so.
        n: Trials.
        confidence: Of the interval.
    """
    assert 0 <= of <= n, "a share is of all trials"
    tail = (1 - confidence) / 2
    if n == 0:
        return Share(of, n, 0.0, 1.0)
    low = float(betaincinv(of, n - of + 1, tail)) if of else 0.0
    high = float(betaincinv(of + 1, n - of, 1 - tail)) if of < n else 1.0
    return Share(of, n, low, high)
