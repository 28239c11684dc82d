"""What each column of an answer has to be: a server that says anything else is not believed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

_NUMBER = re.compile(rb"-?[0-9]{1,19}")
_PLACE = re.compile(rb"[0-9A-Fa-f]{1,8}/[0-9A-Fa-f]{1,8}")
_TIMELINE = re.compile(rb"[0-9A-F]{8}")
_FLAGS = {b"t": True, b"f": False}


@dataclass(frozen=True, slots=True)
class Column:
    """How a value is read from the bytes that came."""

    name: str  # told in a refusal
    read: Callable[[bytes], Any]  # raises ValueError or KeyError
    may_be_null: bool = False
    is_binary: bool = False


def maybe(column: Column) -> Column:
    """The same, or NULL."""
    return replace(column, name=f"{column.name} or NULL", may_be_null=True)


def _matched(pattern: re.Pattern[bytes], value: bytes) -> bytes:
    if pattern.fullmatch(value) is None:
        raise ValueError(value)
    return value


TEXT = Column("a text", lambda value: value.decode("utf-8", "backslashreplace"))
"""A database without an encoding may have names of any bytes: those are shown by their numbers."""
NAME = Column("a text in UTF-8", bytes.decode)
"""What is asked for again by the same bytes."""
NUMBER = Column("a number", lambda value: int(_matched(_NUMBER, value)))
FLAG = Column("true or false", lambda value: _FLAGS[value])
PLACE = Column("a place in WAL", lambda value: _matched(_PLACE, value).decode())
TIMELINE = Column("a timeline", lambda value: int(_matched(_TIMELINE, value), 16))
BYTES = Column("bytes", lambda value: value, is_binary=True)
