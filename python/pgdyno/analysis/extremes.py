"""Long lines with fewer points, of which none is lost that stands out."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pgdyno.analysis.timeline_facts import Extremes

PARTS_MAX = 120  # of a line; each has two points
LAYER_PARTS_MAX = 60  # of a layer's line, of which a drawing has many
Floats = npt.NDArray[np.float64]


def shortened(at: Floats, values: Floats, parts: int = PARTS_MAX) -> tuple[Floats, Floats]:
    """At most two points of each part of a line: its least and its greatest, as they came."""
    if values.size <= 2 * parts:
        return at, values
    kept: list[int] = []
    for part in np.array_split(np.arange(values.size), parts):
        ends = {int(part[values[part].argmin()]), int(part[values[part].argmax()])}
        kept += sorted(ends)
    return at[kept], values[kept]


def extremes(at: Floats, values: Floats) -> Extremes:
    """Of one layer of several that are stacked as means: what these means hide."""
    second, kept = shortened(at, values, LAYER_PARTS_MAX)
    return Extremes(tuple(round(float(one), 3) for one in second), rounded(kept))


def rounded(values: Floats) -> tuple[float, ...]:
    """As many digits as a layer is drawn with."""
    return tuple(float(f"{one:.4g}") for one in values)
