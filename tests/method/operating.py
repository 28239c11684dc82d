"""Plans that stop when decided, simulated with known truth: which verdicts, in how many rounds.

`PYTHONPATH=python:. python tests/method/operating.py [PLANS]` prints the tables that stand in
docs/concepts/statistics.md; `test_method_operating` holds that page against other draws.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np

from pgdyno.stats.interval import FloatArray
from pgdyno.stats.looks import judge_at_looks
from pgdyno.stats.verdict import Comparison, Verdict
from tests.method import simulation as sim

EFFECTS = (0.0, 0.01, 0.03, 0.05, 0.10)
SPREADS = (0.026, 0.05)  # of one paired log ratio
ROUNDS = (8, 20, 40)
MARGIN = 0.03
APART = (Verdict.BETTER, Verdict.WORSE)

FAMILY_ROUNDS = 20
FAMILIES: tuple[tuple[tuple[float, ...], float], ...] = (
    ((0, 0, 0, 0, 0), 0.026),
    ((0, 0.01, 0.03, 0.05, 0.10), 0.026),
    ((0.05, 0.05, 0.05, 0.05, 0.05), 0.026),
    ((0, 0, 0, 0, 0.05), 0.05),
    ((0, 0.01, 0.03, 0.05, 0.10), 0.05),
)
"""True effects of five stages against their common base, and the spread of a pair."""


@dataclass(frozen=True)
class Ended:
    """How simulated plans of two stages ended; shares of plans."""

    plans: int
    apart: float  # better or worse
    equivalent: float
    rounds: float  # mean
    rounds_sd: float
    found: tuple[float, ...]  # ratios of those that are better


@dataclass(frozen=True)
class FamilyEnded:
    """How simulated plans of a base and five stages ended; shares of plans."""

    plans: int
    false: float  # any stage without an effect better or worse
    better: tuple[float, ...]  # each stage
    equivalent: tuple[float, ...]
    trials: float  # mean, the base's included
    trials_sd: float


def normal(rng: np.random.Generator, plans: int, rounds: int) -> FloatArray:
    return rng.standard_normal((plans, rounds))


def heavy(rng: np.random.Generator, plans: int, rounds: int) -> FloatArray:
    """Student t with 3 degrees of freedom, of a variance of one."""
    return rng.standard_t(3, (plans, rounds)) / np.sqrt(3)


def disturbed(rng: np.random.Generator, plans: int, rounds: int) -> FloatArray:
    """Each of the two trials loses what makes 20 spreads one time in ten."""
    one, other = sim.disturbed(rng, (2, plans, rounds)) / np.sqrt(2)
    return np.asarray(one - other, dtype=np.float64)


def correlated(rng: np.random.Generator, plans: int, rounds: int) -> FloatArray:
    """Each round resembles the one before: a correlation of 0.3."""
    shocks, values = rng.standard_normal((plans, rounds)), np.empty((plans, rounds))
    values[:, 0] = shocks[:, 0]
    for at in range(1, rounds):
        values[:, at] = 0.3 * values[:, at - 1] + np.sqrt(1 - 0.3**2) * shocks[:, at]
    return values


NOISES: dict[str, Callable[[np.random.Generator, int, int], FloatArray]] = {
    "heavy tails (t, 3 df)": heavy,
    "10% of trials disturbed": disturbed,
    "rounds resemble the one before (0.3)": correlated,
}


def ended(pairs: FloatArray) -> Ended:
    """How plans end whose log ratios, shape `(plans, rounds)`, are these."""
    plans, rounds_max = pairs.shape
    last = [_last_look(row, rounds_max) for row in pairs]
    rounds = np.array([one.n for one in last])
    return Ended(
        plans,
        sum(one.verdict in APART for one in last) / plans,
        sum(one.verdict is Verdict.EQUIVALENT for one in last) / plans,
        float(rounds.mean()),
        float(rounds.std()),
        tuple(one.ratio for one in last if one.verdict is Verdict.BETTER),
    )


def _last_look(pairs: FloatArray, rounds_max: int) -> Comparison:
    table = sim.table(np.stack([np.zeros(rounds_max), pairs]) + np.log(1000))
    stage, base = table.stages[1], table.stages[0]
    return judge_at_looks(table, [(stage, base)], "first", rounds_max, MARGIN)[0]


def two_stages(rounds_max: int, spread: float, effect: float, plans: int, seed: int) -> Ended:
    """Plans with normal noise; the same noise for every effect."""
    rng = np.random.default_rng((seed, rounds_max))
    return ended(spread * normal(rng, plans, rounds_max) + log1p(effect))


def other_noise(name: str, effect: float, plans: int, seed: int) -> Ended:
    """Plans of at most 20 rounds whose noise is not what the critical values assume."""
    rng = np.random.default_rng((seed, 20))
    return ended(SPREADS[0] * NOISES[name](rng, plans, 20) + log1p(effect))


def family(effects: Sequence[float], spread: float, plans: int, seed: int) -> FamilyEnded:
    """Plans of a base and several stages, with normal noise in every trial."""
    rng = np.random.default_rng((seed, len(effects)))
    truth = np.log1p(np.array([0.0, *effects]))[:, np.newaxis]
    count = len(effects)
    better, equivalent = np.zeros(count), np.zeros(count)
    false, trials = 0, np.zeros(plans)
    for plan in range(plans):
        noise = spread / np.sqrt(2) * rng.standard_normal((count + 1, FAMILY_ROUNDS))
        table = sim.table(truth + noise + np.log(1000))
        base, *stages = table.stages
        last = judge_at_looks(
            table, [(stage, base) for stage in stages], "first", FAMILY_ROUNDS, MARGIN
        )
        better += [one.verdict is Verdict.BETTER for one in last]
        equivalent += [one.verdict is Verdict.EQUIVALENT for one in last]
        pairs = zip(last, effects, strict=True)
        false += any(one.verdict in APART and not effect for one, effect in pairs)
        rounds = [one.n for one in last]
        trials[plan] = sum(rounds) + max(rounds)
    return FamilyEnded(
        plans, false / plans, tuple(better / plans), tuple(equivalent / plans),
        float(trials.mean()), float(trials.std()),
    )  # fmt: skip


def _cell(one: Ended) -> str:
    return f"{100 * one.apart:.1f}, {100 * one.equivalent:.0f}; {one.rounds:.1f}"


def _print_two_stages(plans: int) -> None:
    print("| rounds at most | sd of a pair | " + " | ".join(f"{e:.0%}" for e in EFFECTS) + " |")
    print("|---:|---:|" + "---|" * len(EFFECTS))
    for rounds_max in ROUNDS:
        for spread in SPREADS:
            found = (two_stages(rounds_max, spread, effect, plans, 411) for effect in EFFECTS)
            print(f"| {rounds_max} | {spread:.1%} | {' | '.join(map(_cell, found))} |")


def _print_other_noise(plans: int) -> None:
    print("\n| noise of a pair | false better or worse at 0% | false equivalence at 3% |")
    print("|---|---:|---:|")
    for name in NOISES:
        apart = other_noise(name, 0.0, plans, 412).apart
        alike = other_noise(name, MARGIN, plans, 412).equivalent
        print(f"| {name} | {100 * apart:.1f} | {100 * alike:.1f} |")


def _print_families(plans: int) -> None:
    print("\n| true effects of five stages | sd of a pair | any false | better, each | trials |")
    print("|---|---:|---:|---|---:|")
    for effects, spread in FAMILIES:
        one = family(effects, spread, plans, 413)
        better = ", ".join(f"{100 * share:.0f}" for share in one.better)
        truth = ", ".join(f"{effect:.0%}" for effect in effects)
        print(f"| {truth} | {spread:.1%} | {100 * one.false:.1f} | {better} | {one.trials:.0f} |")


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    _print_two_stages(count)
    _print_other_noise(count)
    _print_families(count)
