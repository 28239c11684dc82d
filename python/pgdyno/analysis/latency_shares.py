"""How the response times of a trial are spread: shares of its requests on a logarithmic scale."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pgdyno.store.histogram import Quantiles

_LOWEST, _HIGHEST, _PER_DECADE = 4, 11, 8  # 10 µs to 100 s in powers of ten of a ns
EDGES_NS: npt.NDArray[np.float64] = np.logspace(
    _LOWEST, _HIGHEST, (_HIGHEST - _LOWEST) * _PER_DECADE + 1
)
"""Between which times requests are counted, ns; what lies beyond counts at the ends."""
_ASKED = (*(number / 1000 for number in range(1, 1000)), 0.9995, 0.9999, 1.0)


def latency_shares(histogram: str, quantiles: Quantiles) -> tuple[float, ...]:
    """Share of the requests between each two neighbours of `EDGES_NS`; they sum up to 1.

    Args:
        histogram: As `KindResult.response` holds it; with at least one request.
        quantiles: Values of merged histograms at shares, see `store.histogram`.
    """
    values = np.array(quantiles([histogram], _ASKED), dtype=np.float64)
    at_most = np.concatenate([[0.0], _ASKED])[np.searchsorted(values, EDGES_NS, side="right")]
    at_most[0], at_most[-1] = 0.0, 1.0
    return tuple(round(float(share), 6) for share in np.diff(at_most))
