"""The time of day as it goes evenly: whoever sets the host's clock moves nothing that was measured.

The driver reads the clock of the day once, when its load begins, and counts on from there by the
clock that only grows. Who looks on beside it does the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable


def steady_unix_ns(
    day_ns: Callable[[], int] = time.time_ns, evenly_ns: Callable[[], int] = time.monotonic_ns
) -> Callable[[], int]:
    """A clock of ns since the Unix epoch: right now, and even from then on.

    Args:
        day_ns: The clock of the day; read once, now.
        evenly_ns: The one that only grows.
    """
    ahead_ns = day_ns() - evenly_ns()
    return lambda: evenly_ns() + ahead_ns


def was_set_s(steady_ns: Callable[[], int], day_ns: Callable[[], int] = time.time_ns) -> float:
    """By how much the clock of the day was set ahead since a steady one began; back: below 0.

    A machine that stood still, as a guest that is moved may, finds its clock ahead as well.

    Args:
        steady_ns: By `steady_unix_ns`.
        day_ns: The clock of the day.
    """
    return (day_ns() - steady_ns()) / 1e9
