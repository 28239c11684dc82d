"""A file of another tool, line by line: any length in constant memory, any line end, UTF-16 too.

The hash is of the bytes as they lie there. Lines that are rewritten by backspaces, as progress of
BenchmarkSQL is, come as several with one number; what is longer than `LINE_MAX` comes in pieces,
which end at a blank where there is one, so that no number is cut.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pgdyno.model.errors import PlanError
from pgdyno.model.system_errors import reason
from pgdyno.plan.schema.files import BadFile, did_you_mean, open_regular

LINE_MAX = 1 << 16
"""Characters of a line that are read at once."""
_BUFFER = 1 << 20
_WORD_MAX = 1 << 12  # characters of a word that is not cut at the end of a piece
_BLANK = re.compile(r"[\s,;](?=[^\s,;]*\Z)")
_COLOURS = re.compile(
    r"\x1b(?:\[[0-?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[@-Z\\-_])"
)
"""What a terminal was told in between, as `script` and loggers with colours write it."""
_REWRITTEN = re.compile("\x08+")
_MARKS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_UNMARKED = {"utf-16-le": [False, True] * 2, "utf-16-be": [True, False] * 2}
"""UTF-16 without a mark: where the first two letters, of any western tool, have their zeros."""
_SQLITE = b"SQLite format 3\x00"

Progress = Callable[[int, int], None]
"""Is told bytes read, and bytes of the file."""


class _Hashed(io.RawIOBase):
    """A file whose bytes are hashed and counted as they are read."""

    def __init__(self, raw: io.RawIOBase, size: int, progress: Progress | None) -> None:
        self._raw = raw
        self._hash = hashlib.sha256()
        self._size = size
        self._progress = progress
        self.count = 0

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """As any file does."""
        got = self._raw.readinto(buffer) or 0
        self._hash.update(memoryview(buffer)[:got])
        self.count += got
        if self._progress is not None:
            self._progress(self.count, max(self._size, self.count))
        return got

    @property
    def sha256(self) -> str:
        """Of what was read."""
        return self._hash.hexdigest()


class Lines:
    """The lines of an open file with their numbers; then its hash and size.

    `ended` says of the text that came last whether its line ends there, or goes on in the next one.
    """

    def __init__(self, path: Path, progress: Progress | None = None) -> None:
        self.path = path
        self._progress = progress
        self.sha256 = ""
        self.size_bytes = 0
        self.last = 0  # number of the last line
        self.ended = True

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Number and text of each line, without its end.

        Raises:
            PlanError: The file cannot be read, or is none.
        """
        try:
            with open_regular(self.path) as raw:
                yield from self._lines(raw)
        except BadFile as error:
            raise PlanError(f"file {self.path} {error}", did_you_mean(self.path)) from error
        except OSError as error:
            raise PlanError(f"file {self.path} cannot be read: {reason(error)}") from error

    def _lines(self, raw: io.FileIO) -> Iterator[tuple[int, str]]:
        hashed = _Hashed(raw, os.fstat(raw.fileno()).st_size, self._progress)
        buffered = io.BufferedReader(hashed, _BUFFER)
        encoding = _encoding(buffered.peek(4)[:4])
        text = io.TextIOWrapper(buffered, encoding, errors="backslashreplace")
        number = 1
        for line, ended in _pieces(text):
            self.last = number
            if number == 1:
                line = line.lstrip("\ufeff")  # noqa: PLW2901
            if "\x1b" in line:
                line = _COLOURS.sub("", line)  # noqa: PLW2901
            *rewritten, shown = _REWRITTEN.split(line) if "\x08" in line else [line]
            self.ended = True
            yield from ((number, part) for part in rewritten)
            self.ended = ended
            yield number, shown
            number += ended
        self.sha256, self.size_bytes = hashed.sha256, hashed.count


def _pieces(text: io.TextIOBase) -> Iterator[tuple[str, bool]]:
    """Lines without their ends, long ones in pieces; and whether each is the last of its line."""
    carried = ""
    while read := text.readline(LINE_MAX - len(carried)):
        piece, carried = carried + read, ""
        if len(piece) < LINE_MAX or piece.endswith("\n"):
            yield piece.rstrip("\n"), True
        else:
            piece, carried = _at_a_blank(piece)
            yield piece, False
    if carried:
        yield carried, True


def _at_a_blank(piece: str) -> tuple[str, str]:
    """A piece without its last word, which may go on; and that word."""
    found = _BLANK.search(piece, len(piece) - _WORD_MAX)
    return (piece, "") if found is None else (piece[: found.end()], piece[found.end() :])


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite.

    Raises:
        PlanError: It cannot be read, or is no file.
    """
    try:
        with open_regular(path) as raw:
            return raw.read(len(_SQLITE)) == _SQLITE
    except BadFile as error:
        raise PlanError(f"file {path} {error}", did_you_mean(path)) from error


def sha256_of(path: Path) -> tuple[str, int]:
    """Hash and size of a file.

    Raises:
        PlanError: It cannot be read, or is no file.
    """
    try:
        with open_regular(path) as raw:
            return hashlib.file_digest(raw, "sha256").hexdigest(), raw.tell()
    except BadFile as error:
        raise PlanError(f"file {path} {error}", did_you_mean(path)) from error


def _encoding(head: bytes) -> str:
    for mark, name in _MARKS:
        if head.startswith(mark):
            return name
    zeros = [byte == 0 for byte in head]
    return next((name for name, where in _UNMARKED.items() if where == zeros), "utf-8")
