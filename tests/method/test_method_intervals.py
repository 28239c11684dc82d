"""Do the intervals hold the planted effect at their stated rate?

Bounds below 94% are measured shortfalls with their reason, asserted from both sides so that the
documents cannot claim more, nor less, than is true.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.method import simulation as sim

pytestmark = pytest.mark.method

CONCEPTS = Path(__file__).parents[2] / "docs" / "concepts" / "statistics.md"
EFFECTS = (0.01, 0.05, 0.20)
# Noise of the same shape in both stages of a pair, or normal noise of any size.
SOUND = ["normal", "heavy tails (t, 3 df)", "skewed (lognormal)", "10% of trials disturbed"]
SOUND += ["one stage 5 times as noisy"]


@pytest.mark.parametrize("name", SOUND)
@pytest.mark.parametrize("rounds", sim.ROUNDS)
@pytest.mark.parametrize("effect", EFFECTS)
def test_the_interval_covers_a_planted_effect(name: str, rounds: int, effect: float) -> None:
    seed = 100 + EFFECTS.index(effect)
    fit = sim.fit_last(sim.logs(sim.NOISES[name], seed, rounds, (0.0, effect)))
    sim.assert_rate_at_least(sim.covered(fit, effect), sim.PLANS, 0.94)


def test_two_rounds_cover_too() -> None:
    fit = sim.fit_last(sim.logs(sim.normal, 104, 2, (0.0, 0.05)))
    sim.assert_rate_at_least(sim.covered(fit, 0.05), sim.PLANS, 0.94)


@pytest.mark.parametrize(
    ("name", "rounds", "floor", "ceiling"),
    [
        # A long tail on one side of the difference: few rounds rarely show it, so that estimate
        # and spread are both too small. Pairing cannot help where only one stage is skewed.
        ("mild skew in one stage only", 3, 0.925, 0.945),
        ("mild skew in one stage only", 5, 0.925, 0.945),
        ("strong skew in one stage only", 3, 0.895, 0.92),
        ("strong skew in one stage only", 5, 0.905, 0.93),
        # The signed-rank interval assumes symmetry as well, but ten ranks feel its lack little.
        ("mild skew in one stage only", 10, 0.94, 0.96),
        ("strong skew in one stage only", 10, 0.94, 0.96),
    ],
)
def test_skew_in_one_stage_costs_as_much_as_the_documents_say(
    name: str, rounds: int, floor: float, ceiling: float
) -> None:
    fit = sim.fit_last(sim.logs(sim.NOISES[name], 105, rounds, (0.0, 0.05)))
    hits = sim.covered(fit, 0.05)
    sim.assert_rate_at_least(hits, sim.PLANS, floor)
    sim.assert_rate_at_most(hits, sim.PLANS, ceiling)


def test_pooling_is_sound_for_equally_noisy_stages_and_narrower() -> None:
    log = sim.logs(sim.normal, 106, 3, (0.0, 0.0, 0.05))
    pooled, own = sim.fit_last(log, pooled=True), sim.fit_last(log)
    sim.assert_rate_at_least(sim.covered(pooled, 0.05), sim.PLANS, 0.94)
    width = [float(np.median(fit.high - fit.low)) for fit in (pooled, own)]
    assert width[0] < 0.9 * width[1]


def test_pooling_falls_short_where_one_stage_is_noisier_and_is_therefore_not_the_default() -> None:
    log = sim.logs(sim.unequal, 107, 3, (0.0, 0.0, 0.05))
    hits = sim.covered(sim.fit_last(log, pooled=True), 0.05)
    sim.assert_rate_at_most(hits, sim.PLANS, 0.90)


@pytest.mark.parametrize("rounds", [3, 6])
def test_drift_within_the_rounds_cannot_break_a_balanced_order(rounds: int) -> None:
    # Each stage stands at each place equally often; throughput falls by 3 % a trial.
    log = sim.logs(sim.normal, 108, rounds, (0.0, 0.0, 0.05))
    places = (np.arange(3)[:, np.newaxis] + np.arange(rounds)) % 3
    fit = sim.fit_last(log - 0.03 * (places + 3 * np.arange(rounds)))
    sim.assert_rate_at_least(sim.covered(fit, 0.05), sim.PLANS, 0.94)


@pytest.mark.parametrize("rounds", [3, 5])
def test_a_percentile_bootstrap_would_fail_these_tests(rounds: int) -> None:
    plans = 4000
    pairs = np.diff(sim.logs(sim.normal, 109, rounds, (0.0, 0.05), plans), axis=1)[:, 0]
    hits = sim.covered(sim.percentile_bootstrap(pairs), 0.05)
    sim.assert_rate_at_most(hits, plans, 0.76 if rounds == 3 else 0.88)
    with pytest.raises(AssertionError, match="true rate may be"):
        sim.assert_rate_at_least(hits, plans, 0.94)


@pytest.mark.wide
def test_the_documents_state_the_coverage_measured_here() -> None:
    told = {
        cells[0]: [float(cell) for cell in cells[1:]]
        for line in CONCEPTS.read_text(encoding="utf-8").splitlines()
        if re.match(r"\| [^|]+ (\| [\d.]+ ){6}\|$", line)
        for cells in [[cell.strip() for cell in line.strip("|").split("|")]]
    }
    measured = dict(sim.coverage_rows())
    assert told.keys() == measured.keys()
    for name, rates in measured.items():
        # 0.2 points: room for another version's random streams, not for another method.
        assert told[name] == pytest.approx(rates, abs=0.2), name
