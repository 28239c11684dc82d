"""Printing of base units; the only place where numbers are scaled."""

from __future__ import annotations

from datetime import UTC, datetime

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_FAR = 1000  # an interval of two rounds may end far beyond it
_NS_UNITS = ((1_000_000_000, "s"), (1_000_000, "ms"), (1_000, "µs"), (1, "ns"))


def bytes_text(count: float) -> str:
    """Bytes with a binary unit and three digits, e.g. `1.46 GiB`."""
    value = float(count)
    for unit in _BYTE_UNITS[:-1]:
        if abs(value) < 1023.5:  # what rounds to 1024 has the next unit
            return f"{value:.0f} {unit}" if unit == "B" else f"{_three(value)} {unit}"
        value /= 1024
    return f"{_three(value)} {_BYTE_UNITS[-1]}"


def ns_text(ns: float) -> str:
    """Nanoseconds in the largest unit that keeps a digit before the point, e.g. `7.90 ms`."""
    for size, unit in _NS_UNITS:
        if abs(ns) >= size * (0.9995 if size > 1 else 1):  # what rounds to 1000 has it, too
            return f"{_three(ns / size)} {unit}"
    return "0 ns" if ns == 0 else f"{ns:.2g} ns"


def at_least_text(ns: float, exact_below_ns: float | None) -> str:
    """A latency, marked where it is a lower bound, e.g. `≥ 5.00 s`.

    Args:
        ns: The latency.
        exact_below_ns: From which value on latencies are lower bounds; None: all are exact.
    """
    is_bound = exact_below_ns is not None and ns >= exact_below_ns
    return f"≥ {ns_text(ns)}" if is_bound else ns_text(ns)


def seconds_text(seconds: float) -> str:
    """A duration for people: `45 s`, `11 min 30 s`, `2 h 05 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def moment_text(unix_ns: int) -> str:
    """A point in time, e.g. `2026-11-21 22:45 UTC`."""
    return f"{datetime.fromtimestamp(unix_ns / 1e9, UTC):%Y-%m-%d %H:%M} UTC"


def count_text(value: float) -> str:
    """A large number with thousands separators, e.g. `48,210`; a part of one is not said as 0."""
    return digits_text(value, 1) if 0 < value < 0.95 else f"{value:,.0f}"


def digits_text(value: float, digits: int = 3) -> str:
    """A number by its leading digits, and never with an exponent, e.g. `0.0123`, `3,450`."""
    shown = f"{value:.{digits}g}"
    if "e" not in shown:
        return f"{value:,.{digits}g}"
    mantissa, _, exponent = shown.partition("e")
    places = max(0, len(mantissa.partition(".")[2]) - int(exponent))
    return f"{float(shown):,.{places}f}"


def share_text(share: float) -> str:
    """A share of a whole, small ones with a digit more, e.g. `43%`, `4.3%`."""
    return f"{share:.1%}" if 0 < share < 0.1 else f"{share:.0%}"


def ratio_text(ratio: float) -> str:
    """A ratio, e.g. `x1.163`."""
    return f"x{ratio:.3f}"


def times_text(ratio: float, low: float, high: float, digits: int = 2) -> str:
    """A ratio with its interval, e.g. `×1.93 (1.80 to 2.10)`."""
    return f"×{ratio:.{digits}f} ({ends_text(low, high, digits)})"


def ends_text(low: float, high: float, digits: int = 3) -> str:
    """Both ends of an interval of ratios, e.g. `1.180 to 1.300`."""
    return f"{_end(low, digits)} to {_end(high, digits)}"


def _end(ratio: float, digits: int) -> str:
    """One end of an interval; beyond its digits on either side only which side that is."""
    least = 10**-digits
    if ratio < least:
        return f"below {least:.{digits}f}"
    return f"{ratio:.{digits}f}" if ratio < _FAR else f"above {_FAR:,}"


def _three(value: float) -> str:
    """Three significant digits without an exponent."""
    size = abs(value)
    if size >= 99.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"
