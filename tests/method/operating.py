"""Prints how plans that stop when decided end: `python tests/method/operating.py [PLANS]`.

The table stands in docs/concepts/statistics.md; `test_method_looks` asserts what follows from it.
"""

from __future__ import annotations

import sys
from math import log1p

import numpy as np

from pgdyno.stats.looks import judge_at_looks
from pgdyno.stats.table import Table
from pgdyno.stats.verdict import Verdict

EFFECTS = (0.0, 0.01, 0.03, 0.05, 0.10)
SPREADS = (0.026, 0.05)  # of one paired log ratio
ROUNDS = (8, 20)
MARGIN = 0.03


def cell(rounds_max: int, spread: float, effect: float, plans: int) -> str:
    """Better, equivalent and undecided in per cent, and the mean number of rounds."""
    rng = np.random.default_rng((411, rounds_max))
    pairs = spread * rng.standard_normal((plans, rounds_max)) + log1p(effect)
    found = []
    for row in pairs:
        tpm = 1000 * np.exp(np.stack([np.zeros(rounds_max), row]))
        table = Table(("base", "stage"), tuple(range(1, rounds_max + 1)), tpm)
        found += judge_at_looks(table, [("stage", "base")], "first", rounds_max, MARGIN)
    shares = [
        sum(one.verdict in verdicts for one in found) / plans
        for verdicts in ((Verdict.BETTER, Verdict.WORSE), (Verdict.EQUIVALENT,))
    ]
    rounds = float(np.mean([one.n for one in found]))
    return f"{100 * shares[0]:.1f}, {100 * shares[1]:.0f}; {rounds:.1f}"


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 4_000
    print("| rounds at most | sd of a pair | " + " | ".join(f"{e:.0%}" for e in EFFECTS) + " |")
    print("|---:|---:|" + "---|" * len(EFFECTS))
    for rounds_max in ROUNDS:
        for spread in SPREADS:
            cells = " | ".join(cell(rounds_max, spread, effect, count) for effect in EFFECTS)
            print(f"| {rounds_max} | {spread:.1%} | {cells} |")
