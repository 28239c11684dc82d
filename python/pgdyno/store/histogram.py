"""Histograms of a run file: merged and asked for quantiles by the Rust core."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pgdyno import core

Quantiles = Callable[[Sequence[str], Sequence[float]], list[int]]
"""A function as `merged_quantiles`."""


def recorded(histogram: str) -> int:
    """How many values it holds."""
    return core.histogram_count(histogram)


def merged_quantiles(histograms: Sequence[str], shares: Sequence[float]) -> list[int]:
    """Quantiles in ns of several windows taken together; 1.0 is the maximum.

    Args:
        histograms: Base64 of V2 deflate, as `KindResult.response` holds it.
        shares: Values from 0 to 1.

    Returns:
        One value in ns for each share; zeros where nothing was recorded.
    """
    return core.quantiles(core.merge_histograms(list(histograms)), list(shares))
