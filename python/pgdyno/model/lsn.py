"""Places in the WAL, as PostgreSQL writes them, compared as numbers."""

from __future__ import annotations


def lsn_of(text: str) -> int:
    """Bytes since the WAL's beginning.

    Raises:
        ValueError: It is no place in the WAL.
    """
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_text(place: int) -> str:
    """As PostgreSQL writes it, e.g. 16/B374D848."""
    return f"{place >> 32:X}/{place & 0xFFFF_FFFF:X}"
