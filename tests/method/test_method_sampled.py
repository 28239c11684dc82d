"""Intervals of sampled sessions hold the truth as often as they say."""

from __future__ import annotations

import numpy as np

from pgdyno.stats.sampled import averages

RUNS = 400


def test_intervals_of_looks_hold_the_true_average() -> None:
    """Sessions wait for a second or two at a time, so that looks of one second are much alike."""
    rng = np.random.default_rng(20_261_125)
    held = 0
    for _ in range(RUNS):
        there = rng.binomial(8, 0.3, size=61)
        within = there[:-1]  # what is there in each second
        counts = rng.binomial(10, within / 8) * 8
        ((_, low, high),) = averages(counts[None, :], np.full(60, 10), rng)
        held += low <= 8 * 0.3 <= high
    assert 0.91 <= held / RUNS <= 0.98


def test_steady_sessions_have_no_error() -> None:
    found = averages(np.full((1, 30), 20), np.full(30, 10), np.random.default_rng(1))
    assert found.tolist() == [[2.0, 2.0, 2.0]]
