"""Counters: what their samples tell of how they grew.

A counter that is smaller than it was began anew between two samples: statistics were reset, a
server recovered from a crash, a number of the kernel ran over. How far it had come meanwhile is
not known, so that neither what it grew by is.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

ROUNDED = 1e-9  # of a value: what sums of fractions lose when they are added in another order


def fell(values: npt.NDArray[np.float64]) -> bool:
    """Whether a counter was ever smaller than at the sample before."""
    return bool((np.diff(values) < -ROUNDED * np.abs(values[:-1])).any())
