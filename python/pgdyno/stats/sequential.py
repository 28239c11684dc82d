"""Looking while it is measured, and stopping when it is decided: what each look asks for.

Whoever looks after every round and stops at the first interval that excludes 1 is wrong in one of
seven plans in which nothing differs. So looks are fixed before the first trial, and each asks for
more than a single one would: the studentized Hodges-Lehmann estimate must exceed a critical value.
The values of all looks together spend the error rate evenly, after Lan and DeMets with a spending
function close to Pocock's. Under normal noise the whole path of studentized estimates is free of
the noise's size, so that the values are found by simulation, once.

`python -m pgdyno.stats.sequential` simulates them; `tests/method` holds `CRITICAL` against that,
and the error rates that follow from it against planted effects.

Not here: what is decided at a look (`looks`).

Source: K. K. G. Lan, D. L. DeMets, "Discrete sequential boundaries for clinical trials",
Biometrika 70(3), 1983.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import e, log1p, sqrt

import numpy as np

from pgdyno.model.looks import ALPHA, LOOKS, OPEN_MAX
from pgdyno.stats.interval import FloatArray, hodges_lehmann

PATHS = 200_000  # values are right to about 1 %, the first looks of many comparisons to 2 %
SEED = 19_830_701
_AT_A_TIME = 2_000  # paths; memory, not results, depends on it


CRITICAL: dict[int, tuple[tuple[float, ...], ...]] = {
    8: (
        (6.21, 5.40, 4.51, 3.98, 3.28),
        (8.79, 7.12, 5.67, 4.88, 3.83),
        (10.86, 8.53, 6.54, 5.40, 4.20),
        (12.66, 9.47, 7.21, 5.85, 4.48),
        (14.10, 10.37, 7.61, 6.21, 4.66),
        (15.45, 11.14, 8.15, 6.52, 4.83),
        (16.86, 11.60, 8.43, 6.73, 4.97),
        (18.30, 12.07, 8.69, 6.94, 5.12),
    ),
    12: (
        (4.39, 3.77, 3.36, 2.83),
        (5.62, 4.59, 3.99, 3.26),
        (6.48, 5.12, 4.34, 3.50),
        (7.14, 5.49, 4.61, 3.68),
        (7.74, 5.87, 4.82, 3.83),
        (8.25, 6.16, 5.03, 3.96),
        (8.64, 6.34, 5.19, 4.05),
        (9.07, 6.54, 5.34, 4.12),
    ),
    20: (
        (5.13, 4.16, 3.62, 3.00, 2.58),
        (6.64, 4.95, 4.24, 3.41, 2.94),
        (7.71, 5.45, 4.61, 3.68, 3.13),
        (8.52, 5.87, 4.87, 3.87, 3.28),
        (9.20, 6.12, 5.15, 3.99, 3.39),
        (9.89, 6.39, 5.35, 4.09, 3.47),
        (10.41, 6.57, 5.50, 4.18, 3.54),
        (10.79, 6.78, 5.61, 4.24, 3.58),
    ),
    40: (
        (6.38, 4.82, 4.08, 3.28, 2.79, 2.61, 2.54),
        (7.96, 5.69, 4.73, 3.72, 3.13, 2.94, 2.86),
        (9.14, 6.27, 5.08, 3.96, 3.33, 3.11, 3.04),
        (10.19, 6.69, 5.35, 4.15, 3.47, 3.23, 3.16),
        (11.21, 7.08, 5.60, 4.29, 3.57, 3.33, 3.24),
        (12.11, 7.51, 5.74, 4.39, 3.65, 3.41, 3.32),
        (12.73, 7.71, 5.91, 4.50, 3.72, 3.49, 3.38),
        (13.35, 7.94, 6.01, 4.58, 3.79, 3.55, 3.43),
    ),
}
"""By rounds, by comparisons still open less one, by look; in units of sd / sqrt(pairs)."""


def critical(rounds_max: int, still_open: int, look: int) -> float:
    """What a studentized estimate must exceed at a look.

    Args:
        rounds_max: The most that are measured, a key of `LOOKS`.
        still_open: Comparisons that are not found better or worse yet, 1 to `OPEN_MAX`.
        look: Its place in `LOOKS`, from 0.
    """
    return CRITICAL[rounds_max][still_open - 1][look]


def paths(looks: Sequence[int], count: int, seed: int = SEED) -> FloatArray:
    """Studentized estimates of experiments in which nothing differs, shape `(count, looks)`.

    Args:
        looks: Rounds after which is looked, ascending, 2 or more.
        count: How many experiments.
        seed: The same gives the same.
    """
    rng = np.random.default_rng((seed, *looks))
    found = []
    for begin in range(0, count, _AT_A_TIME):
        noise = rng.standard_normal((min(_AT_A_TIME, count - begin), looks[-1]))
        found.append(np.stack([studentized(noise[:, :look]) for look in looks], axis=1))
    return np.concatenate(found)


def studentized(pairs: FloatArray) -> FloatArray:
    """|Hodges-Lehmann| / (sd / sqrt(pairs)) of experiments, shape `(experiments, pairs)`."""
    error = pairs.std(axis=1, ddof=1) / sqrt(pairs.shape[1])
    return np.asarray(np.abs(hodges_lehmann(pairs)) / error, dtype=np.float64)


def boundaries(statistics: FloatArray, looks: Sequence[int], alpha: float) -> tuple[float, ...]:
    """The critical value of each look.

    Args:
        statistics: From `paths`.
        looks: The same.
        alpha: Share of the paths that may cross any of them.
    """
    count = len(statistics)
    inside = np.ones(count, dtype=bool)
    values = []
    for column, look in enumerate(looks):
        spent = round(count * alpha * log1p((e - 1) * look / looks[-1]))
        more = spent - int((~inside).sum())
        candidates = np.sort(statistics[inside, column])
        limit = float(candidates[-more:][0]) if more else float(candidates[-1])
        values.append(limit)
        inside &= statistics[:, column] < limit
    return tuple(values)


def simulated(rounds_max: int, count: int = PATHS) -> tuple[tuple[float, ...], ...]:
    """A row of `CRITICAL`."""
    looks = LOOKS[rounds_max]
    at_alpha = partial(boundaries, paths(looks, count), looks)
    return tuple(at_alpha(ALPHA / still_open) for still_open in range(1, OPEN_MAX + 1))


if __name__ == "__main__":
    for rounds in LOOKS:
        print(f"    {rounds}: (")
        for row in simulated(rounds):
            print(f"        ({', '.join(f'{value:.2f}' for value in row)}),")
        print("    ),")
