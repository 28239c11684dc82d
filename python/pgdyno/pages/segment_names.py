"""Names of files of WAL: which bytes a segment holds, which segment holds a byte, histories."""

from __future__ import annotations

import re

_SEGMENT = re.compile(r"[0-9A-F]{24}")
_HISTORY = re.compile(r"[0-9A-F]{8}\.history")
_TIMELINE_DIGITS, _NUMBER_DIGITS = 8, 8
_BYTES_PER_ID = 1 << 32  # of the first of the two numbers after the timeline


def is_segment(name: str) -> bool:
    """Whether a file is called as a segment is."""
    return _SEGMENT.fullmatch(name) is not None


def is_history(name: str) -> bool:
    """Whether a file is called as the history of a timeline is."""
    return _HISTORY.fullmatch(name) is not None


def history_name(timeline: int) -> str:
    """What the history of a timeline is called."""
    return f"{timeline:08X}.history"


def without_timeline(name: str) -> str:
    """What the segments of all timelines share that hold the same place; orders them by it."""
    return name[_TIMELINE_DIGITS:]


def begin_of(name: str, segment_bytes: int) -> int:
    """The place in the WAL, in bytes since its beginning, that a segment begins with."""
    place = without_timeline(name)
    number = int(place[_NUMBER_DIGITS:], 16)
    return int(place[:_NUMBER_DIGITS], 16) * _BYTES_PER_ID + number * segment_bytes


def place_name(place: int, segment_bytes: int) -> str:
    """The name, without its timeline, of the segment that holds a place."""
    upper, lower = divmod(place, _BYTES_PER_ID)
    return f"{upper:08X}{lower // segment_bytes:08X}"
