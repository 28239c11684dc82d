"""Numbers out of what other programs print: finite and not negative, or refused.

Their outputs are cut short, garbled by a second writer and changed by versions; what is not a plain
number must not become a result.
"""

from __future__ import annotations

import math


def finite(value: object) -> float:
    """A count, a rate or a time as a number.

    Raises:
        ValueError: It is none, negative, infinite, or not a number.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a number")
    try:
        number = float(value)
    except (ValueError, OverflowError):
        raise ValueError(f"{str(value)[:80]!r} is not a number") from None
    if not math.isfinite(number) or number < 0:
        raise ValueError(f"{number} is not a finite number of at least 0")
    return number
