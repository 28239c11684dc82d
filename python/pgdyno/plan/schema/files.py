"""Files that a person names, read safely: the one reader for plans, mixes, scripts, configuration.

What a person sends to standard input is read by the same rules, but for what it is. Of files:
regular files only, within a bound, text in UTF-8. A device, a pipe or a socket is told from a file
before it is opened, so that nothing waits, rewinds or fills the memory. What a plan stores must lie
in the plan's folder, after all links are followed; who calls turns `BadFile` into an error.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from pgdyno.model.system_errors import reason
from pgdyno.model.text import visible

TEXT_BYTES_MAX = 1 << 20
"""Of a plan, a mix, a script, a file of configuration."""

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}
_BOMS = ((b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))
_KERNEL = ("/proc/", "/sys/", "/dev/")
_PART_BYTES = 1 << 16
_FILES_MAX = 1000  # of a folder that are looked through for a name that is nearly meant
_SQLITE = b"SQLite format 3\0"


class BadFile(Exception):
    """A file that cannot be used; its text says why, in lower case, without the file's name."""


def text_file(
    path: str | os.PathLike[str], bytes_max: int = TEXT_BYTES_MAX, within: Path | None = None
) -> str:
    """The text of a file, without the byte order mark that some editors put before it.

    Args:
        path: The file.
        bytes_max: The most that it may have.
        within: The folder that it must lie in, and not in the kernel's; None: anywhere.

    Raises:
        BadFile: It cannot be read, is not a regular file, too large, elsewhere, or not UTF-8.
    """
    return _decoded(_bytes(path, bytes_max, within))


def standard_input(bytes_max: int = TEXT_BYTES_MAX) -> str:
    """The text of what is sent to standard input, until it ends; it may well be a pipe.

    Args:
        bytes_max: The most that it may have.

    Raises:
        BadFile: It cannot be read, is too large, or not UTF-8.
    """
    try:
        if sys.stdin is None:  # it was closed before we began
            raise BadFile("cannot be read: it is closed")
        data = sys.stdin.buffer.read(bytes_max + 1)
    except OSError as error:
        raise BadFile(f"cannot be read: {reason(error)}") from error
    _require_no_database(data)
    if len(data) > bytes_max:  # how many more is not read to be told
        raise BadFile(f"has {len(data)} bytes or more, allowed are {bytes_max}")
    return _decoded(data)


def _decoded(data: bytes) -> str:
    for mark, name in _BOMS:
        if data.startswith(mark):
            raise BadFile(f"is {name}, allowed is UTF-8")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadFile(f"is not UTF-8: byte {error.start} is wrong") from error
    return text.removeprefix("\ufeff")


def file_meant(path: Path, ending: str = "") -> Path | None:
    """The file that lies where one of nearly its name was asked for.

    Args:
        path: What was asked for.
        ending: What the names end with that are looked through.

    Returns:
        None if it is there, or no other.
    """
    # These never fail, whatever the name is.
    if os.path.lexists(path) or not os.path.isdir(path.parent):
        return None
    found = (one for one in path.parent.glob(f"*{ending}") if one.is_file())
    close = get_close_matches(path.name, {one.name for one in islice(found, _FILES_MAX)}, n=1)
    return path.parent / close[0] if close else None


def did_you_mean(path: str | os.PathLike[str], ending: str = "") -> str | None:
    """The hint of one that is not there; see `file_meant`."""
    near = file_meant(Path(path), ending)
    return f"Did you mean {visible(str(near))}?" if near else None


def require_regular(path: str | os.PathLike[str]) -> None:
    """Look whether a path leads to a regular file; it is not opened for reading.

    Raises:
        BadFile: It does not, or cannot be looked at.
    """
    with _located(path):
        pass


@contextmanager
def open_regular(path: str | os.PathLike[str]) -> Iterator[io.FileIO]:
    """A regular file of any size, open to be read piece by piece.

    Raises:
        BadFile: It is none, or cannot be opened.
    """
    with _located(path) as located:
        handle = _opened(located)
    with io.FileIO(handle, "rb") as file:
        yield file


def _opened(located: int) -> int:
    try:
        return os.open(f"/proc/self/fd/{located}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise BadFile(f"cannot be read: {reason(error)}") from error


def _bytes(path: str | os.PathLike[str], bytes_max: int, within: Path | None) -> bytes:
    with _located(path) as located:
        if within is not None:
            _require_within(located, within)
        handle = _opened(located)
    # The size that the system tells may be wrong: files of the kernel have none, others grow.
    data = bytearray()
    with os.fdopen(handle, "rb", buffering=0) as file:
        try:
            while len(data) <= bytes_max and (part := file.read(_PART_BYTES)):
                data += part
            size = max(len(data), os.fstat(handle).st_size)
        except OSError as error:
            raise BadFile(f"cannot be read: {reason(error)}") from error
    _require_no_database(data)
    if len(data) > bytes_max:
        raise BadFile(f"has {size} bytes, allowed are {bytes_max}")
    return bytes(data)


def _require_no_database(data: bytes | bytearray) -> None:
    if data.startswith(_SQLITE):
        raise BadFile(
            "is a database and no text; a run file is for `pgdyno resume` and `pgdyno report`"
        )


@contextmanager
def _located(path: str | os.PathLike[str]) -> Iterator[int]:
    """A handle of a regular file that does not open it, so that a device does not notice."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError as error:
        raise BadFile(f"cannot be read: {reason(error)}") from error
    except ValueError as error:  # NUL
        raise BadFile("cannot be read: its path holds a NUL") from error
    try:
        kind = stat.S_IFMT(os.fstat(handle).st_mode)
        if kind != stat.S_IFREG:
            raise BadFile(f"is {_KINDS.get(kind, 'no file')}, allowed is a regular file")
        yield handle
    finally:
        os.close(handle)


def _require_within(handle: int, folder: Path) -> None:
    real, allowed = os.readlink(f"/proc/self/fd/{handle}"), f"{folder.resolve()}/"
    if real.startswith(_KERNEL):
        raise BadFile(f"is {real}, a file of the kernel; allowed is a file of a disk")
    if not real.startswith(allowed.replace("//", "/")):
        raise BadFile(f"is {real}, outside the plan's folder {allowed}")
