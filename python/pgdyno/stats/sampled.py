"""How many sessions were there on average, from looks at moments, and how sure that is.

Looks of one second see the same waits, so seconds, not looks, are what is drawn anew: a bootstrap
over blocks of one second. What truly changes from second to second widens the interval too; it is
no narrower than the error of sampling.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

DRAWS = 1_000
SECONDS_MIN = 5  # of fewer no interval is given


def averages(
    counts: npt.NDArray[np.int64],
    ticks: npt.NDArray[np.int64],
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> npt.NDArray[np.float64]:
    """Average, low and high of each key.

    Args:
        counts: How often each key was met in each second, shape `(keys, seconds)`.
        ticks: How often was looked in each second, shape `(seconds,)`, all above zero.
        rng: Draws seconds.
        confidence: Of the intervals, pointwise.

    Returns:
        Sessions, shape `(keys, 3)`; low and high are NaN for fewer than `SECONDS_MIN` seconds.
    """
    estimate = counts.sum(axis=1) / ticks.sum()
    unknown = np.full_like(estimate, np.nan)
    if ticks.size < SECONDS_MIN:
        return np.stack([estimate, unknown, unknown], axis=1)
    drawn = rng.multinomial(ticks.size, np.full(ticks.size, 1 / ticks.size), size=DRAWS)
    anew = (drawn @ counts.T) / (drawn @ ticks)[:, None]
    tail = (1 - confidence) / 2
    low, high = np.quantile(anew, [tail, 1 - tail], axis=0)
    return np.stack([estimate, low, high], axis=1)
