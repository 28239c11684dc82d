"""CPU time by transaction from counted samples, with the error of counting.

Samples of one second come together (a checkpoint, a vacuum), and those of one start of a server
have its luck in common. So the error is that of drawing trials anew, and of each its seconds: a
bootstrap in two steps (Davison and Hinkley, Bootstrap Methods and their Application, 3.8). It is
never taken as less than that of a count, its square root: what was met rarely, or once, has no
spread to draw from.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
_DRAWS = 400
_CONFIDENCE = 0.99
"""Of a difference that is called one: a graph shows hundreds of functions at once."""


def rates(
    counts: npt.NDArray[Any],
    divisor: Floats,
    trial: npt.NDArray[np.int64],
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Counts by unit of a divisor, e.g. samples a transaction, of many functions at once.

    Args:
        counts: Shape `(seconds, functions)`.
        divisor: Shape `(seconds,)`; what the counts are divided by, in sum.
        trial: Shape `(seconds,)`: whose second it is.
        rng: Draws.

    Returns:
        Rates and their standard errors, shape `(functions,)` each; 0 and infinite where the
        divisor is 0.
    """
    total = float(divisor.sum())
    if total <= 0:
        nothing = np.zeros(counts.shape[1])
        return nothing, nothing + np.inf
    found = counts.sum(axis=0)
    weights = _weights(trial, rng)
    drawn_divisor = weights @ divisor
    kept = drawn_divisor > 0
    drawn = (weights[kept] @ counts) / drawn_divisor[kept, None]
    spread = drawn.std(axis=0, ddof=1) if kept.sum() > 1 else np.full(found.shape, np.inf)
    counting = np.sqrt(np.maximum(found, 1.0)) / total
    return found / total, np.maximum(spread, counting)


def _weights(trial: npt.NDArray[np.int64], rng: np.random.Generator) -> Floats:
    """How often each second was drawn, shape `(draws, seconds)`."""
    names = np.unique(trial)
    places = [np.flatnonzero(trial == name) for name in names]
    weights = np.zeros((_DRAWS, trial.size))
    for draw in range(_DRAWS):
        chosen = [places[which] for which in rng.integers(names.size, size=names.size)]
        seconds = np.concatenate([own[rng.integers(own.size, size=own.size)] for own in chosen])
        weights[draw] = np.bincount(seconds, minlength=trial.size)
    return weights


def quantile(seconds: int) -> float:
    """By how many standard errors two rates must differ; fewer seconds ask for more."""
    return float(special.stdtrit(max(1, seconds - 1), (1 + _CONFIDENCE) / 2))


def differs(
    rate: tuple[float, float], other: tuple[float, float], quantile_: float
) -> tuple[float, float, bool]:
    """The difference of two rates, each with its standard error.

    Returns:
        Rate less the other one, half the width of its interval, and whether that excludes 0.
    """
    delta = rate[0] - other[0]
    half = quantile_ * float(np.hypot(rate[1], other[1]))
    return delta, half, abs(delta) > half
