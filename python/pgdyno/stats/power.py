"""How many rounds an effect needs, and how small an effect a number of rounds can show.

One answer for plans, noise floors and undecided verdicts: the power of Student's t test of paired
log ratios. It takes the spread as known; what is predicted from a spread seen in three rounds is
itself rough.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import special

from pgdyno.model.plan import ROUNDS_MAX
from pgdyno.stats.interval import FloatArray

POWER = 0.8  # chance to see an effect that is there; the usual choice, not a law
EXACT_MAX = 60  # rounds up to which power is solved for; then the sum of two t values is as good
SPREADS = 1000  # of the average over the spread; power is right to 0.1 points then
HALVINGS = 30


def rounds_for(effect: float, sd: float, alpha: float, power: float = POWER) -> int | None:
    """Smallest number of rounds that shows an effect.

    Args:
        effect: Log ratio to be told from zero, positive.
        sd: Standard deviation of one paired log ratio, not negative.
        alpha: Two-sided error rate, e.g. 0.05.
        power: Chance that the interval then excludes zero.

    Returns:
        At least 2; `None` if more than a plan can have are needed: that is not within reach.
    """
    if effect <= 0:
        return None
    found = np.flatnonzero(_needed(alpha, power) * sd <= effect)
    return int(found[0]) + 2 if found.size else None


def smallest_effect(sd: float, rounds: int, alpha: float, power: float = POWER) -> float:
    """Smallest log ratio that `rounds` (2 to `ROUNDS_MAX`) show with the wanted chance."""
    return float(_needed(alpha, power)[rounds - 2] * sd)


@lru_cache(maxsize=64)
def _needed(alpha: float, power: float) -> FloatArray:
    """Effect in units of sd that 2, 3, ... `ROUNDS_MAX` rounds show; falls with the rounds."""
    rounds = np.arange(2, ROUNDS_MAX + 1)
    critical = np.asarray(special.stdtrit(rounds - 1, 1 - alpha / 2), dtype=np.float64)
    shifts = critical + np.asarray(special.stdtrit(rounds - 1, power), dtype=np.float64)
    # For few rounds this sum is too small: three would show the effect in 76 %, not in 80 %.
    few = rounds <= EXACT_MAX
    shifts[few] = _exact_shifts(critical[few], rounds[few] - 1, power, 3 * shifts[few])
    return np.asarray(shifts / np.sqrt(rounds), dtype=np.float64)


def _exact_shifts(
    critical: FloatArray, freedom: npt.NDArray[np.int64], power: float, high: FloatArray
) -> FloatArray:
    """Standard errors that bring a t value above `critical` with the chance `power`.

    By the definition of t, a normal value over an independent spread, averaged over that spread:
    the library's noncentral t does not converge at extreme levels.
    """
    middle = (np.arange(SPREADS) + 0.5) / SPREADS
    half = freedom[:, np.newaxis] / 2
    spread = np.sqrt(special.gammaincinv(half, middle) / half)  # chi, by its square's quantiles
    barrier = critical[:, np.newaxis] * spread  # (rounds, spreads)
    low = np.zeros_like(high)
    for _ in range(HALVINGS):
        shift = (low + high) / 2
        enough = special.ndtr(shift[:, np.newaxis] - barrier).mean(axis=1) >= power
        low, high = np.where(enough, low, shift), np.where(enough, shift, high)
    return high
