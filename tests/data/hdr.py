"""Histograms of run files that no driver made."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pgdyno.drive.histogram import Histogram


def encode(values_ns: npt.NDArray[np.int64]) -> str:
    """The histogram of these values, each at least 1 ns."""
    histogram = Histogram()
    histogram.add(values_ns)
    return histogram.encoded()
