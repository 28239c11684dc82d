"""Exact intervals of shares."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pgdyno.stats.shares import share


def test_none_of_n_is_the_rule_of_three() -> None:
    assert share(0, 100).low == 0
    assert share(0, 100).high == pytest.approx(1 - 0.025 ** (1 / 100))
    assert share(100, 100).low == pytest.approx(0.025 ** (1 / 100))
    assert share(100, 100).high == 1
    assert (share(0, 0).low, share(0, 0).high) == (0, 1)


@given(st.integers(1, 300), st.data())
def test_it_is_clopper_s_and_pearson_s(n: int, data: st.DataObject) -> None:
    of = data.draw(st.integers(0, n))
    theirs = stats.binomtest(of, n).proportion_ci(0.95, "exact")

    found = share(of, n)

    assert (found.low, found.high) == pytest.approx((theirs.low, theirs.high), abs=1e-9)
