"""Printing of base units."""

from __future__ import annotations

import pytest

from pgdyno.model.units import (
    at_least_text,
    bytes_text,
    count_text,
    digits_text,
    moment_text,
    ns_text,
    ratio_text,
    seconds_text,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.00 KiB"), (1536 << 20, "1.50 GiB"),
     (123 << 30, "123 GiB"), (5 << 60, "5120 PiB"), (1023.7, "1.00 KiB"),
     ((1 << 20) - 1, "1.00 MiB"), (10 * 1024 - 1, "10.0 KiB"), (100 * 1024 - 1, "100 KiB")],
)  # fmt: skip
def test_bytes(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize(
    ("ns", "text"),
    [(0, "0 ns"), (999, "999 ns"), (7_900_000, "7.90 ms"), (12_345, "12.3 µs"),
     (61_000_000_000, "61.0 s"), (0.5, "0.5 ns"), (999_600, "1.00 ms"), (999_400, "999 µs"),
     (9_996, "10.0 µs"), (99_960, "100 µs"), (999.7, "1.00 µs")],
)  # fmt: skip
def test_nanoseconds(ns: float, text: str) -> None:
    assert ns_text(ns) == text


def test_lower_bounds_are_never_plain_numbers() -> None:
    assert at_least_text(4_999_999_999, 5_000_000_000) == "5.00 s"
    assert at_least_text(5_000_000_000, 5_000_000_000) == "≥ 5.00 s"
    assert at_least_text(5_000_000_000, None) == "5.00 s"
    assert at_least_text(26_000_000, 0) == "≥ 26.0 ms"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.4, "0 s"), (45, "45 s"), (59.6, "1 min 00 s"), (690, "11 min 30 s"), (7500, "2 h 05 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_a_moment_is_told_in_utc() -> None:
    assert moment_text(1_763_765_159_500_000_000) == "2025-11-21 22:45 UTC"


def test_counts_and_ratios() -> None:
    assert count_text(48210.4) == "48,210"
    assert [count_text(value) for value in (0, 0.5, 0.04, 0.96, 1.4)] == [
        "0",
        "0.5",
        "0.04",
        "1",
        "1",
    ]
    assert count_text(0.00002) == "0.00002"
    assert ratio_text(1.16349) == "x1.163"


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.01234, 3, "0.0123"), (3_451.7, 3, "3,450"), (999.6, 3, "1,000"), (123.4, 4, "123.4"),
     (-56_789.0, 2, "-57,000"), (9.06e-05, 3, "0.0000906"), (-1e-07, 1, "-0.0000001"),
     (0, 3, "0"), (345.0, 3, "345"), (9_876.0, 4, "9,876")],
)  # fmt: skip
def test_leading_digits_are_shown_without_an_exponent(value: float, digits: int, text: str) -> None:
    assert digits_text(value, digits) == text
