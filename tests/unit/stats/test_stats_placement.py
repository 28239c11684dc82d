"""Throughput that goes with interrupts between CPUs is told from throughput that does not."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.stats.finding import Clear, Finding, Unknown
from pgdyno.stats.placement import placement

RNG = np.random.default_rng(5)
STAGES = np.repeat([0, 1], 6).astype(np.int64)
IPIS = np.array([0.01, 0.7, 0.3, 0.02, 0.65, 0.1] * 2)


def test_trials_that_are_slower_with_more_interrupts_are_a_finding() -> None:
    levels = np.where(STAGES == 0, 9.0, 9.4)
    rate = levels - 0.3 * IPIS + 0.01 * RNG.standard_normal(12)

    found = placement(STAGES, rate, IPIS)

    assert isinstance(found, Finding)
    lost = {one.name: one.value for one in found.evidence}["throughput_lost"]
    assert lost == pytest.approx(1 - np.exp(-0.3 * 0.69), abs=0.03)
    assert "0.01 to 0.70" in found.fact


def test_a_stage_that_has_more_of_them_is_not_blamed_for_its_level() -> None:
    """Between stages the number differs by what they do: only rounds of one stage are compared."""
    ipis = np.where(STAGES == 0, 0.1, 2.0) + 0.01 * RNG.standard_normal(12)
    rate = np.where(STAGES == 0, 9.4, 9.0) + 0.02 * RNG.standard_normal(12)

    assert isinstance(placement(STAGES, rate, ipis), Clear)


@pytest.mark.parametrize("slope", [0.3, 0.0])
def test_faster_or_unmoved_trials_are_clear(slope: float) -> None:
    rate = 9.0 + slope * IPIS + 0.01 * RNG.standard_normal(12)

    assert isinstance(placement(STAGES, rate, IPIS), Clear)


def test_trials_slowed_by_something_else_are_clear() -> None:
    """Interrupts that come by themselves are more a transaction where there are fewer of these."""
    rate = np.where(STAGES == 0, 2.0, 2.4) + 1.5 * RNG.standard_normal(12)
    ipis = 300 * np.exp(-rate) * np.exp(0.05 * RNG.standard_normal(12))

    assert isinstance(placement(STAGES, rate, ipis), Clear)


def test_a_loss_too_small_to_matter_is_clear() -> None:
    rate = 9.0 - 0.02 * IPIS + 1e-4 * RNG.standard_normal(12)

    assert isinstance(placement(STAGES, rate, IPIS), Clear)


def test_few_trials_or_equal_numbers_tell_nothing() -> None:
    assert isinstance(placement(STAGES[:5], IPIS[:5], IPIS[:5]), Unknown)
    assert isinstance(placement(STAGES, IPIS, np.ones(12)), Clear)


def test_false_findings_are_as_rare_as_the_level_says() -> None:
    found = 0
    for _ in range(1000):
        rate = 9.0 + 0.1 * RNG.standard_normal(12)
        found += isinstance(placement(STAGES, rate, RNG.random(12)), Finding)
    assert found <= 25  # 10 expected: more has a chance below 1 in 10,000


@pytest.mark.parametrize(("trials", "told"), [(1, "1 trial is too"), (3, "3 trials are too")])
def test_few_trials_are_too_few_to_tell(trials: int, told: str) -> None:
    found = placement(STAGES[:trials], IPIS[:trials], IPIS[:trials])

    assert isinstance(found, Unknown)
    assert told in found.fact
