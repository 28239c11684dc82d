"""Numbers as tools print them under any locale; what is none is refused, never guessed."""

from __future__ import annotations

import unicodedata

from pgdyno.model.numbers import finite

_MOST = 1e18  # beyond it nothing was measured
_DIGITS_MAX = 40
_SEPARATORS = ".,'\u2019\u066b\u066c"  # beside spaces of all kinds


def printed(text: str) -> float:
    """A number of a program that prints no thousands separators: one point or comma.

    Raises:
        ValueError: It is no finite number of at least 0.
    """
    text = text.strip()
    if len(text) > _DIGITS_MAX:
        raise ValueError(f"{text[:20]!r} is too long for a number")
    if text.count(",") == 1 and "." not in text:
        text = text.replace(",", ".")
    return _measured(finite(text))


def whole(text: str) -> int:
    """A count.

    Raises:
        ValueError: It is none.
    """
    number = printed(text)
    if number != int(number):
        raise ValueError(f"{number:g} is no count")
    return int(number)


def integer(text: str, most: int) -> int:
    """An integer of a log, quickly: no separators, no more than `most`.

    Raises:
        ValueError: It is none, negative, or more.
    """
    number = int(text) if len(text) <= _DIGITS_MAX else -1
    if not 0 <= number <= most:
        raise ValueError(f"{text[:20]!r} is no integer of at most {most}")
    return number


def grouped(text: str, decimals: int) -> float:
    """A number with separators of any locale, of which it is known how many decimals it has.

    Java's `%,12.0f` gives `1,234`, `1.234`, `1 234` or digits of another script.

    Raises:
        ValueError: It is no number.
    """
    digits = []
    for one in text.strip():
        if (digit := unicodedata.decimal(one, None)) is not None:
            digits.append(str(digit))
        elif one not in _SEPARATORS and not one.isspace():
            raise ValueError(f"{text.strip()[:20]!r} is not a number")
    if not digits or len(digits) > _DIGITS_MAX:
        raise ValueError(f"{text.strip()[:20]!r} is not a number")
    return _measured(int("".join(digits)) / 10**decimals)


def _measured(number: float) -> float:
    if number > _MOST:
        raise ValueError(f"{number:g} is more than anything measured")
    return number
