"""A data directory whose changes are written down, from the first to the last.

The file system that does it covers the directory, so that the server uses it where it lies, and
nobody gets past it. It runs in a process of its own (`pgdyno.disk.worker`), which unmounts it when
this process ends, however it does; should that one be killed, it is unmounted here.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

from pgdyno.disk.record import Recorded
from pgdyno.folders import Folder
from pgdyno.model.drill import Fault
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_plain
from pgdyno.mounts import unmount_left
from pgdyno.shell import Process, start

_DEVICE = Path("/dev/fuse")
_END_S = 60.0  # a record of some GiB is synced


class Mounted:
    """See `Recording`."""

    recorded: Recorded | None = None
    environment: Mapping[str, str] = MappingProxyType({})

    def __init__(self, process: Process) -> None:
        self._process = process

    def require_seen(self) -> None:
        """See `Recording`; who uses the folder uses the mount."""

    def fail(self, fault: Fault) -> None:
        """See `Recording`."""
        _write(self._process, json.dumps({"fault": asdict(fault)}))

    def cut(self) -> None:
        """See `Recording`."""
        _write(self._process, json.dumps({"cut": True}))
        _told(self._process, self._process.stdout.readline())


@contextmanager
def recording(folder: Folder, data: str, record: str, bytes_max: int) -> Iterator[Mounted]:
    """Meanwhile, write down what is asked of a data directory.

    Args:
        folder: A folder of ours that nobody else can change.
        data: Name of the data directory in it, which no process uses yet.
        record: Name of the record, which is made in it.
        bytes_max: Most that the record may take; what comes after that is not recorded.

    Raises:
        TargetError: It cannot be mounted, or the record cannot be written.
    """
    if (fault := mountable()) is not None:
        raise fault
    folder.require_closed()
    unmount_left(folder)
    spec = {"folder": ".", "data": data, "record": record, "bytes_max": bytes_max}
    # -P: no module is looked for in the folder where it starts.
    process = start([sys.executable, "-P", "-m", "pgdyno.disk.worker"], pipes=True,
                    folder=folder.handle, dies_with_us=signal.SIGTERM)  # fmt: skip
    try:
        _ask(process, json.dumps(spec))
    except BaseException:  # what it says of itself is the reason, not that it ended
        process.kill()
        process.close_pipes()
        unmount_left(folder)
        raise
    current = Mounted(process)
    try:
        yield current
    finally:
        try:
            current.recorded = _end(process)
        finally:
            unmount_left(folder)


def mountable() -> TargetError | None:
    """What keeps us from mounting a file system, before anything is begun; None: nothing."""
    if os.geteuid() != 0:
        return TargetError("a file system that records is mounted by root alone", "Run it as root.")
    if not _DEVICE.exists():
        return TargetError(
            f"there is no {_DEVICE}, which a file system that records needs",
            "Load the module fuse, or give the container this device; or leave out --recorder.",
        )
    return None


def _ask(process: Process, spec_json: str) -> None:
    with suppress(TargetError):  # it may have said why before it ended
        _write(process, spec_json)
    _told(process, process.stdout.readline())


def _write(process: Process, line: str) -> None:
    try:
        process.stdin.write(line + "\n")
        process.stdin.flush()
    except (BrokenPipeError, ValueError) as error:
        raise TargetError("the recorder has ended") from error


def _end(process: Process) -> Recorded:
    """Let it come to its end."""
    try:
        if not process.stdin.closed:
            process.stdin.close()
        answer = process.stdout.readline()
        if process.wait(_END_S) is None:
            raise TargetError(f"the recorder did not end within {_END_S:.0f} s")
        return from_plain(Recorded, _told(process, answer)["result"])
    finally:
        process.kill()
        process.close_pipes()


def _told(process: Process, answer: str) -> dict[str, object]:
    if not answer:
        raise TargetError(f"the recorder ended with code {process.wait(5)}")
    message: dict[str, object] = json.loads(answer)
    if "error" in message:
        hint = message.get("hint")
        raise TargetError(f"the recorder failed: {message['error']}", str(hint) if hint else None)
    return message
