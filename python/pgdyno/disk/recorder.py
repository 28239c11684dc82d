"""What records what is done to a data directory: a file system over it, or a library."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from pgdyno.disk.preloaded import preloading
from pgdyno.disk.record import Recorded
from pgdyno.disk.recording import mountable, recording
from pgdyno.folders import Folder
from pgdyno.model.drill import Fault, Recorder
from pgdyno.preload import require_compiler
from pgdyno.shell import OsUser


class Recording(Protocol):
    """A record that grows; what became of it is known when the recording has ended."""

    recorded: Recorded | None
    environment: Mapping[str, str]
    """Variables that the server is started with: without them, nothing of it may be seen."""

    def require_seen(self) -> None:
        """A server was started with the environment: refuse it if nothing of it is written down.

        Raises:
            TargetError: It has not what records.
        """

    def fail(self, fault: Fault) -> None:
        """From now on, for a while, the disk does this.

        Raises:
            TargetError: The recorder has ended.
        """

    def cut(self) -> None:
        """The power goes, now: every call that changes something fails, and the record ends.

        Raises:
            TargetError: The recorder has ended.
        """


def possible(wanted: Recorder | None) -> Recorder:
    """What can record here: what is wanted; None: a mount where one is possible.

    Raises:
        TargetError: What is wanted is not possible, or nothing is.
    """
    fault = mountable()
    if wanted == "mount" and fault is not None:
        raise fault
    if wanted == "mount" or (wanted is None and fault is None):
        return "mount"
    require_compiler()
    return "library"


@contextmanager
def recorded(
    by: Recorder, folder: Folder, data: str, record: str, bytes_max: int, user: OsUser
) -> Iterator[Recording]:
    """Meanwhile, write down what is asked of a data directory.

    Args:
        by: What records.
        folder: A folder of ours that nobody else can change.
        data: Name of the data directory in it, which no process uses yet.
        record: Name of the record, which is made in it.
        bytes_max: Most that the record may take; what comes after that is not recorded.
        user: Who runs the server.

    Raises:
        TargetError: It cannot be recorded, or the record does not hold all that was done.
    """
    if by == "mount":
        with recording(folder, data, record, bytes_max) as mounted:
            yield mounted
    else:
        with preloading(folder, data, record, bytes_max, user) as preloaded:
            yield preloaded
