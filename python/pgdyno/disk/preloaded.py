"""A data directory whose changes a library writes down that is preloaded into its server.

For machines without file systems in user space: nothing is mounted, and nobody need be root. What
is changed by a process without the library is not seen, and neither is what a process did in the
call in which it was killed; the record ends there, and says so.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import IntEnum, auto
from importlib.resources import files

from pgdyno import core
from pgdyno.disk.record import Recorded, answered, path_of
from pgdyno.folders import Folder, failing
from pgdyno.model.drill import Fault
from pgdyno.model.errors import TargetError
from pgdyno.preload import Preloaded, preloaded
from pgdyno.shell import OsUser

_NS = 1_000_000_000
_FOLDER_WORDS = 8
_CALLS = {"write": 1, "grow": 2, "sync": 3}
_ANSWERS = {"error": errno.EIO, "full": errno.ENOSPC, "nothing": 0}


class _Word(IntEnum):
    """The layout of `library/record.h`."""

    LOADED = 0
    BYTES = auto()
    BYTES_MAX = auto()
    ENDED = auto()
    ENDED_NS = auto()
    GONE_NS = auto()
    _SYNCS = auto()
    BUSY = auto()
    MET = auto()
    ROOT = auto()
    DEVICE = auto()
    FAULT = auto()
    ANSWER = auto()
    LASTS_NS = auto()
    UNTIL_NS = auto()
    WHERE = auto()
    FOLDER = auto()


_NO_ROOM = 1
_ENDED = {
    2: "a process was killed in the middle of a call, so that nobody knows what it did last",
    3: "the record could not be written",
    4: "the data directory was changed in a way that the library cannot follow",
}


@dataclass(frozen=True, slots=True)
class Stocked:
    """A record that holds what there was."""

    bytes: int
    root: int  # inode of the data directory
    device: int


class Preloading:
    """See `Recording`."""

    recorded: Recorded | None = None

    def __init__(
        self, library: Preloaded, folder: Folder, record: str, data: str, bytes_max: int
    ) -> None:
        self._library = library
        self._folder = folder
        self._record = record
        self._bytes_max = bytes_max
        self.environment: Mapping[str, str] = {
            "LD_PRELOAD": str(library.library),
            "PGDYNO_DISK_WORDS": str(library.words),
            "PGDYNO_DISK_RECORD": str(folder.path.resolve() / record),
            "PGDYNO_DISK_DATA": str(folder.path.resolve() / data),
        }

    def require_seen(self) -> None:
        """See `Recording`."""
        self._library.require_loaded(_Word.LOADED, "records")

    def fail(self, fault: Fault) -> None:
        """See `Recording`."""
        folder = (fault.folder or "").encode()
        self._library.put_bytes(_Word.FOLDER, folder.ljust(8 * _FOLDER_WORDS, b"\0"))
        where = 0 if fault.folder is None else 1 + fault.elsewhere
        for word, value in (
            (_Word.FAULT, 0), (_Word.WHERE, where), (_Word.ANSWER, _ANSWERS[fault.answer]),
            (_Word.LASTS_NS, round(fault.seconds * _NS)), (_Word.UNTIL_NS, 0),
            (_Word.FAULT, _CALLS[fault.calls]),
        ):  # fmt: skip
            self._library.put(word, value)

    def cut(self) -> None:
        """See `Recording`."""
        with self._between_calls():
            self._library.put(_Word.GONE_NS, time.monotonic_ns())

    def end(self) -> Recorded:
        """End the record; its server has ended.

        Raises:
            TargetError: It does not hold all that was done.
        """
        word = self._library.get
        with self._between_calls():
            size, why, gone_ns = word(_Word.BYTES), word(_Word.ENDED), word(_Word.GONE_NS)
            spec = {
                "folder": path_of(self._folder), "record": self._record,
                "bytes": size, "full_ns": word(_Word.ENDED_NS) if why else None,
                "gone_ns": gone_ns or None, "met": word(_Word.MET),
            }  # fmt: skip
        self.require_seen()
        if size > self._bytes_max:
            raise TargetError(
                f"the record has {size} bytes, the library writes at most {self._bytes_max}",
                "Another process of the user that runs the server changed it: look for that one.",
            )
        if why > _NO_ROOM:
            raise TargetError(f"{_ENDED.get(why, why)}: it cannot be drilled", "Drill it again.")
        return answered(Recorded, lambda: core.close_record(json.dumps(spec)))

    @contextmanager
    def _between_calls(self) -> Iterator[None]:
        """Meanwhile nobody changes the data directory who has the library."""
        with failing(f"lock {self._folder.path / self._record}"):
            how = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(self._record, how, dir_fd=self._folder.handle)
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)


@contextmanager
def preloading(
    folder: Folder, data: str, record: str, bytes_max: int, user: OsUser
) -> Iterator[Preloading]:
    """Meanwhile, write down what a server with the library does to a data directory.

    Args:
        folder: A folder of ours that nobody else can change.
        data: Name of the data directory in it, which no process uses yet.
        record: Name of the record, which is made in it.
        bytes_max: Most that the record may take; what comes after that is not recorded.
        user: Who runs the server.

    Raises:
        TargetError: There is no C compiler, the record cannot be written, or it does not hold all.
    """
    folder.require_closed()
    sources = [one for one in files(__package__).joinpath("library").iterdir()
               if one.name.endswith((".c", ".h"))]  # fmt: skip
    words = _Word.FOLDER + _FOLDER_WORDS
    with preloaded(sources, words, user) as library:
        spec = {"folder": path_of(folder), "data": data, "record": record,
                "bytes_max": bytes_max}  # fmt: skip
        try:
            stocked = answered(Stocked, lambda: core.take_stock(json.dumps(spec)))
        except TargetError as error:
            raise TargetError(f"the recorder failed: {error.fact}") from error
        for word, value in (
            (_Word.BYTES, stocked.bytes), (_Word.BYTES_MAX, bytes_max),
            (_Word.ROOT, stocked.root), (_Word.DEVICE, stocked.device),
        ):  # fmt: skip
            library.put(word, value)
        current = Preloading(library, folder, record, data, bytes_max)
        yield current
        current.recorded = current.end()
