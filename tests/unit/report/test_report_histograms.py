"""The core reads histograms of the published format, and merging is adding."""

from __future__ import annotations

import numpy as np
import pytest

from pgdyno.store.histogram import merged_quantiles
from tests.data.hdr import encode

SHARES = (0.5, 0.95, 0.99, 1.0)


def test_merged_quantiles_are_those_of_all_values() -> None:
    values = np.random.default_rng(1).lognormal(16, 1, 5_000).astype(np.int64)
    merged = merged_quantiles([encode(values[:2_000]), encode(values[2_000:])], SHARES)
    assert merged == pytest.approx(np.quantile(values, SHARES), rel=2e-3)
