"""Looks of a plan that stops when it is decided: fixed before its first trial."""

from __future__ import annotations

from typing import Literal

Stop = Literal["rounds", "decided"]

LOOKS: dict[int, tuple[int, ...]] = {
    8: (3, 4, 5, 6, 8),
    12: (4, 6, 8, 12),
    20: (4, 6, 8, 12, 20),
    40: (4, 6, 8, 12, 20, 30, 40),
}
"""Rounds after which is looked, by the most that are measured."""
ALPHA = 0.05  # the error rate of a family of comparisons, over all looks
OPEN_MAX = 8  # comparisons of a plan that may be open together
