"""Simulated plans with known truth: shapes of noise, planted effects, rates with their allowance.

A trial's throughput is exp(stage effect + round effect + noise). The noise shapes have a spread of
about one; `SD` scales them to what hosts show. `python tests/method/simulation.py` prints the table
of measured coverage that stands in docs/concepts/statistics.md.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from pgdyno.stats.interval import Estimate, FloatArray, Pool, estimate, hodges_lehmann, pooled_sd
from pgdyno.stats.table import Table

SD = 0.03  # of the log throughput of one trial; 3 % is what nominally equal nodes show
ROUND_SD = 0.10  # of what a round does to all of its trials
PLANS = 20_000
ROUNDS = (3, 5, 10)
CONFIDENCE = 0.95

Shape = tuple[int, ...]
Noise = Callable[[np.random.Generator, Shape], FloatArray]


def normal(rng: np.random.Generator, shape: Shape) -> FloatArray:
    return rng.standard_normal(shape)


def heavy(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Student t with 3 degrees of freedom."""
    return rng.standard_t(3, shape)


def skewed(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Lognormal, long tail towards slow; the same in every stage."""
    return -np.exp(rng.standard_normal(shape))


def disturbed(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Normal, and one trial in ten loses what makes 20 spreads."""
    return rng.standard_normal(shape) - 20 * (rng.random(shape) < 0.1)


def unequal(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """Normal, the last stage five times as noisy as the others."""
    noise = rng.standard_normal(shape)
    noise[:, -1] *= 5
    return noise


def mild_skew_in_one(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """The last stage lognormal with half a spread, the others hardly noisy."""
    return _skew_in_one(rng, shape, 0.5)


def strong_skew_in_one(rng: np.random.Generator, shape: Shape) -> FloatArray:
    """The last stage lognormal, the others hardly noisy."""
    return _skew_in_one(rng, shape, 1.0)


def _skew_in_one(rng: np.random.Generator, shape: Shape, sigma: float) -> FloatArray:
    noise = 0.01 * rng.standard_normal(shape)
    # What is estimated is the pseudomedian: the median of the mean of two trials.
    centre = np.median(
        np.exp(sigma * np.random.default_rng(0).standard_normal((400_000, 2))).mean(1)
    )
    noise[:, -1] -= np.exp(sigma * rng.standard_normal((shape[0], shape[2]))) - centre
    return noise


NOISES: dict[str, Noise] = {
    "normal": normal,
    "heavy tails (t, 3 df)": heavy,
    "skewed (lognormal)": skewed,
    "10% of trials disturbed": disturbed,
    "one stage 5 times as noisy": unequal,
    "mild skew in one stage only": mild_skew_in_one,
    "strong skew in one stage only": strong_skew_in_one,
}


def logs(  # shape (plans, stages, rounds)
    noise: Noise, seed: int, rounds: int, effects: tuple[float, ...], plans: int = PLANS
) -> FloatArray:
    """Log throughput of many plans; `effects` are the stages' changes, e.g. (0.0, 0.05)."""
    rng = np.random.default_rng((seed, rounds))
    stage = np.log1p(np.array(effects))[np.newaxis, :, np.newaxis]
    round_ = ROUND_SD * rng.standard_normal((plans, 1, rounds))
    shape = (plans, len(effects), rounds)
    return np.log(60_000) + stage + round_ + SD * noise(rng, shape)


def fit_last(log: FloatArray, *, pooled: bool = False) -> Estimate:
    """The last stage against the first, in every plan."""
    pool = Pool(pooled_sd(log), log.shape[1]) if pooled else None
    return estimate(log[:, -1] - log[:, 0], CONFIDENCE, pool)


def covered(fit: Estimate, effect: float) -> int:
    truth = np.log1p(effect)
    return int(((fit.low <= truth) & (truth <= fit.high)).sum())


def percentile_bootstrap(pairs: FloatArray, draws: int = 500) -> Estimate:
    """The naive interval, as a mutant: resample the rounds, take quantiles of the estimates."""
    plans, count = pairs.shape
    rng = np.random.default_rng(1)
    chosen = rng.integers(0, count, (draws, count))
    centres = np.stack([hodges_lehmann(pairs[:, pick]) for pick in chosen])
    low, high = np.quantile(centres, [0.025, 0.975], axis=0)
    nothing = np.ones(plans)
    return Estimate(hodges_lehmann(pairs), low, high, nothing, CONFIDENCE, "percentile bootstrap")


def table(log: FloatArray) -> Table:
    """One plan, shape `(stages, rounds)`, as the table that is compared."""
    stages, rounds = log.shape
    names = tuple(f"stage{number}" for number in range(stages))
    return Table(names, tuple(range(1, rounds + 1)), np.exp(log))


def assert_rate_at_least(hits: int, n: int, rate: float) -> None:
    """The true rate is at least `rate`, but for one chance in a thousand (Clopper-Pearson)."""
    lower = float(stats.beta.ppf(0.001, hits, n - hits + 1))
    assert lower >= rate, f"{hits} of {n} is {hits / n:.4f}, true rate may be {lower:.4f} < {rate}"


def assert_rate_at_most(hits: int, n: int, rate: float) -> None:
    """The count is no surprise (one in a thousand) if the true rate is `rate` or less."""
    most = int(stats.binom.ppf(0.999, n, rate))
    assert hits <= most, f"{hits} of {n} is {hits / n:.4f}, at most {most} expected at {rate}"


def coverage_rows() -> list[tuple[str, list[float]]]:
    """Measured coverage in percent by noise shape and number of rounds, with and without pool."""
    rows: list[tuple[str, list[float]]] = []
    for name, noise in NOISES.items():
        rates = []
        for rounds in ROUNDS:
            hits = covered(fit_last(logs(noise, 11, rounds, (0.0, 0.05))), 0.05)
            rates.append(100 * hits / PLANS)
        for rounds in ROUNDS[:2]:
            plans = logs(noise, 12, rounds, (0.0, 0.0, 0.05))
            rates.append(100 * covered(fit_last(plans, pooled=True), 0.05) / PLANS)
        naive = percentile_bootstrap(np.diff(logs(noise, 13, 3, (0.0, 0.05), 4000), axis=1)[:, 0])
        rates.append(100 * covered(naive, 0.05) / 4000)
        rows.append((name, rates))
    return rows


def main() -> None:
    heads = [f"{rounds} rounds" for rounds in ROUNDS]
    heads += [f"pooled, {rounds} rounds" for rounds in ROUNDS[:2]]
    print("| noise of a trial |", " | ".join([*heads, "percentile bootstrap, 3 rounds"]), "|")
    print("|---" * (len(heads) + 2) + "|")
    for name, rates in coverage_rows():
        print(f"| {name} |", " | ".join(f"{rate:.1f}" for rate in rates), "|")


if __name__ == "__main__":
    main()
