"""A server's log on the disk: read in pieces, however long it is, and kept within a bound."""

from __future__ import annotations

import os
from collections.abc import Iterator

KEPT_BYTES = 4 << 20
"""What a run file keeps of one server's log."""
LINE_BYTES = 16 << 10
"""What is read of one line; the rest of it is left out."""
_CHUNK_BYTES = 1 << 20
_TAIL_BYTES = 256 << 10  # that are followed at once: a second of a log of some thousand lines
_HEAD_SHARE = 1 / 4  # a start, and the first complaints; most is told by the end
_WORDS_BYTES = 16 << 10
_WORDS_LINES = 6  # an error with its context, and the one that came of it


def log_lines(handle: int) -> Iterator[str]:
    """The lines that a log has now, each without its end and no longer than `LINE_BYTES`."""
    rest = b""
    for chunk in _chunks(handle):
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line[:LINE_BYTES].decode(errors="replace")
        rest = rest[:LINE_BYTES]
    if rest:
        yield rest.decode(errors="replace")


class LogTail:
    """Follows a log that is being written, from its present end on.

    A log that grows faster than it is followed is skipped, so that whoever follows it stays in the
    present.
    """

    def __init__(self, handle: int) -> None:
        self._handle = handle
        self._at = os.fstat(handle).st_size
        self._rest = b""
        self.unread_bytes = 0

    def new_lines(self) -> list[str]:
        """The lines that have been written since, each without its end, as `log_lines` has them."""
        size = os.fstat(self._handle).st_size
        if size < self._at:  # it was begun anew
            self._at, self._rest = 0, b""
        if (skipped := size - self._at - _TAIL_BYTES) > 0:
            self._at, self._rest = self._at + skipped, b""
            self.unread_bytes += skipped
        piece = os.pread(self._handle, size - self._at, self._at)
        self._at += len(piece)
        *whole, rest = (self._rest + piece).split(b"\n")
        self._rest = rest[:LINE_BYTES]
        return [line[:LINE_BYTES].decode(errors="replace") for line in whole]


def log_text(handle: int, most: int = KEPT_BYTES) -> str:
    """The log, or its begin and its end with a note of how many bytes stood in between."""
    size = os.fstat(handle).st_size
    if size <= most:
        return os.pread(handle, most, 0).decode(errors="replace")
    head = int(most * _HEAD_SHARE)
    tail = most - head
    left_out = f"\n[pgdyno: {size - most} of {size} bytes are left out here]\n"
    return (
        os.pread(handle, head, 0).decode(errors="replace")
        + left_out
        + os.pread(handle, tail, size - tail).decode(errors="replace")
    )


def last_words(handle: int) -> str:
    """The last lines in one."""
    size = os.fstat(handle).st_size
    start = max(0, size - _WORDS_BYTES)
    lines = os.pread(handle, size - start, start).decode(errors="replace").splitlines()
    return " / ".join(line.strip() for line in lines[-_WORDS_LINES:]) or "its log is empty"


def _chunks(handle: int) -> Iterator[bytes]:
    at, size = 0, os.fstat(handle).st_size
    while at < size and (chunk := os.pread(handle, min(_CHUNK_BYTES, size - at), at)):
        at += len(chunk)
        yield chunk
