"""The interval of paired log ratios, against values worked out by hand or by scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pgdyno.stats.interval import (
    MANY_PAIRS,
    PIVOT_DRAWS,
    Pool,
    estimate,
    hodges_lehmann,
    null_pivot,
    pooled_sd,
)


def test_hodges_lehmann_of_three_is_the_median_of_six_means() -> None:
    # Means: 0, 1, 2, 5, 6, 10; the median is (2 + 5) / 2.
    assert hodges_lehmann(np.array([0.0, 10.0, 2.0])) == 3.5


def test_hodges_lehmann_works_along_the_last_axis() -> None:
    values = np.array([[[1.0, 1.0, 1.0]], [[0.0, 10.0, 2.0]]])
    assert hodges_lehmann(values).tolist() == [[1.0], [3.5]]


def test_two_pairs_get_the_interval_of_student() -> None:
    # For two values the estimate is the mean, so that Student's t with one degree is exact.
    fit = estimate(np.array([[0.1, 0.2]]), 0.95)
    half = stats.t.ppf(0.975, 1) * np.std([0.1, 0.2], ddof=1) / np.sqrt(2)
    assert fit.centre[0] == pytest.approx(0.15)
    assert fit.high[0] - fit.centre[0] == pytest.approx(half, rel=0.03)  # of 200 000 draws
    assert fit.p[0] == pytest.approx(2 * stats.t.sf(0.15 / (half / stats.t.ppf(0.975, 1)), 1), 0.03)


@pytest.mark.parametrize("pairs", [3, 5, 9])
def test_the_pivot_is_close_to_student_because_the_estimate_is_close_to_the_mean(
    pairs: int,
) -> None:
    pivot = null_pivot(pairs)
    assert pivot.size == PIVOT_DRAWS
    student = stats.t.ppf(0.975, pairs - 1)
    assert np.quantile(pivot, 0.95) == pytest.approx(student, rel=0.06)


def test_many_pairs_agree_with_the_signed_rank_test_of_scipy() -> None:
    pairs = np.random.default_rng(5).normal(0.02, 0.03, (20, 12))
    fit = estimate(pairs, 0.95)
    for row, p in zip(pairs, fit.p, strict=True):
        assert p == pytest.approx(stats.wilcoxon(row, method="exact").pvalue)
    assert fit.confidence >= 0.95


def test_ten_pairs_drop_eight_walsh_averages_from_each_end() -> None:
    # Tables of the signed-rank sum: P(T <= 8) = 0.0244 for n = 10, so the ninth counts.
    pairs = np.random.default_rng(6).normal(size=(1, 10))
    left, right = np.triu_indices(10)
    walsh = np.sort((pairs[0, left] + pairs[0, right]) / 2)
    fit = estimate(pairs, 0.95)
    assert fit.low[0] == walsh[8]
    assert fit.high[0] == walsh[-9]
    assert fit.confidence == pytest.approx(1 - 2 * 25 / 1024)


def test_the_interval_excludes_zero_exactly_when_p_is_small() -> None:
    for pairs in (2, 3, 5, MANY_PAIRS, 15):
        values = np.random.default_rng(7).normal(0.02, 0.03, (2000, pairs))
        fit = estimate(values, 0.95)
        apart = (fit.low > 0) | (fit.high < 0)
        assert (apart == (fit.p <= 0.05 + 1e-12)).all()


def test_a_confidence_that_ranks_cannot_reach_falls_back_to_the_parametric_way() -> None:
    values = np.random.default_rng(8).normal(0.02, 0.03, (1, 10))  # 1 - 2 / 1024 at most
    fit = estimate(values, 0.999)
    assert fit.confidence == 0.999
    assert fit.method.startswith("parametric bootstrap")


def test_the_pooled_spread_of_two_stages_is_that_of_their_pairs() -> None:
    log = np.random.default_rng(9).normal(size=(4, 2, 5))
    own = (log[:, 1] - log[:, 0]).std(axis=1, ddof=1)
    assert pooled_sd(log) == pytest.approx(own)
    fits = [estimate(log[:, 1] - log[:, 0], 0.95, pool) for pool in (None, Pool(own, 2))]
    assert fits[0].low == pytest.approx(fits[1].low)


def test_the_method_says_that_the_spread_was_pooled() -> None:
    log = np.random.default_rng(9).normal(size=(1, 4, 3))
    fit = estimate(log[:, 1] - log[:, 0], 0.95, Pool(pooled_sd(log), 4))
    assert "pooled over 4 stages" in fit.method
