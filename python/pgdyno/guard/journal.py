"""What a repair overwrites, and with what, on the disk before the first byte is: a folder a repair.

    pages    old bytes of a run of blocks, then the new ones, run after run
    runs     a line each: where it is in `pages`, which blocks of which file, their LSNs, sums
    state    `whole` once both are synced, `written` when the cluster is, `undone`

A journal that is not whole was cut off before anything was written: it is thrown away. One that is
whole and not written is finished by the same bytes again, wherever that was broken off.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from pgdyno.folders import Folder, failing
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json
from pgdyno.model.repair import RedoBegin, RedoNeeds
from pgdyno.model.units import bytes_text

VERSION = 1
_NAME = "repair-"
_PAGES, _RUNS, _STATE = "pages", "runs", "state"
_SPARE_BYTES = 16 << 20

JournalState: TypeAlias = Literal["whole", "written", "undone"]


@dataclass(frozen=True, slots=True)
class JournalHead:
    """Of which cluster a journal is, and how far it came."""

    version: int
    state: JournalState
    system_identifier: str
    redo_lsn: str
    end_lsn: str
    data: str  # the data directory, as it was called
    block_bytes: int
    runs: int
    blocks: int
    runs_sha256: str


@dataclass(frozen=True, slots=True)
class Run:
    """Blocks of a file that follow each other, and are overwritten."""

    at: int  # of the old bytes, in `pages`; the new ones follow
    path: str  # of the file, below the data directory
    first_block: int  # within the fork
    file_at: int  # bytes into the file
    lsns: tuple[str | None, ...]  # of the new pages; None: zeroes
    sha256: str  # of old and new bytes


class JournalWriter:
    """A journal that is being written; the cluster is not touched meanwhile."""

    def __init__(self, folder: Folder) -> None:
        """Begin it in an empty folder that only this user can read."""
        self._folder = folder
        self._pages, self._runs = self._file(_PAGES), self._file(_RUNS)
        self._sum = hashlib.sha256()
        self._at = self._blocks = self._count = 0

    def _file(self, name: str) -> int:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with failing(f"write {self._folder.path / name}"):
            return os.open(name, how, 0o600, dir_fd=self._folder.handle)

    def add(
        self, path: str, first_block: int, file_at: int, old: bytes, new: bytes,
        lsns: tuple[str | None, ...],
    ) -> None:  # fmt: skip
        """Write down a run of blocks.

        Raises:
            TargetError: It cannot be written.
        """
        sha256 = hashlib.sha256(old + new).hexdigest()
        run = Run(self._at, path, first_block, file_at, lsns, sha256)
        line = json.dumps(asdict(run)).encode() + b"\n"
        with failing(f"write {self._folder.path}"):
            _write(self._pages, old + new)
            _write(self._runs, line)
        self._sum.update(line)
        self._at += len(old) + len(new)
        self._blocks += len(lsns)
        self._count += 1

    @property
    def blocks(self) -> int:
        """Written down so far."""
        return self._blocks

    def seal(self, head: JournalHead) -> JournalHead:
        """Sync it, and say that it is whole.

        Raises:
            TargetError: The disk is full, or failed.
        """
        with failing(f"sync {self._folder.path}"):
            os.fsync(self._pages)
            os.fsync(self._runs)
        return _told(self._folder, _with(head, "whole", self._count, self._blocks, self._sum))

    def close(self) -> None:
        """Close its files."""
        for handle in (self._pages, self._runs):
            os.close(handle)


@contextmanager
def new(journals: Folder) -> Iterator[tuple[Folder, JournalWriter]]:
    """A journal to be written; one that does not become whole is removed at the end.

    Raises:
        TargetError: It cannot be made.
    """
    taken = [int(name.removeprefix(_NAME)) for name in _names(journals)]
    name = f"{_NAME}{max(taken, default=0) + 1:04d}"
    with journals.make(name, 0o700) as folder:
        writer = JournalWriter(folder)
        try:
            yield folder, writer
        finally:
            writer.close()
            if not folder.has(_STATE):
                journals.remove_folder(name)


def unfinished(journals: Folder, begin: RedoBegin) -> tuple[Folder, JournalHead] | None:
    """A whole journal whose bytes may not all be on the cluster; those cut off are removed.

    Raises:
        TargetError: It is of another state of the cluster: it was started in between.
    """
    for name in _names(journals):
        folder = journals.into(name)
        head = head_of(folder)
        if head is None:
            folder.close()
            journals.remove_folder(name)
        elif head.state == "whole":
            require_of(folder, head, begin)
            return folder, head
    return None


def require_of(folder: Folder, head: JournalHead, begin: RedoBegin) -> None:
    """Refuse a journal of another cluster, or of another crash of it.

    Raises:
        TargetError: It is.
    """
    theirs, ours = (
        (head.system_identifier, head.redo_lsn),
        (begin.system_identifier, begin.redo_lsn),
    )
    if theirs != ours:
        raise TargetError(
            f"journal {folder.path} is of system {theirs[0]} with redo from {theirs[1]}, the"
            f" cluster is system {ours[0]} with redo from {ours[1]}",
            "The cluster was started since that repair: rebuild it from the standby if that repair"
            " was broken off.",
        )


def latest(journals: Folder) -> tuple[Folder, JournalHead] | None:
    """The newest journal that was carried out, even in part."""
    for name in reversed(_names(journals)):
        folder = journals.into(name)
        if (head := head_of(folder)) is not None and head.state != "undone":
            return folder, head
        folder.close()
    return None


def _names(journals: Folder) -> list[str]:
    return [name for name in journals.names() if re.fullmatch(rf"{_NAME}\d+", name)]


def require_room(folder: Folder, bytes_wanted: int) -> None:
    """Refuse a journal that would not fit.

    Raises:
        TargetError: There is too little room.
    """
    free = shutil.disk_usage(folder.handle).free
    if free < bytes_wanted + _SPARE_BYTES:
        raise TargetError(
            f"the journal may take {bytes_text(bytes_wanted)}, {folder.path} has"
            f" {bytes_text(free)} free",
            "Name a folder with more room: --journals.",
        )


def head_for(begin: RedoBegin, needs: RedoNeeds, data: Folder) -> JournalHead:
    """What a journal of this cluster will say, but for what it holds."""
    return JournalHead(
        VERSION, "whole", begin.system_identifier, begin.redo_lsn, needs.end_lsn, str(data.path),
        begin.block_bytes, 0, 0, "",
    )  # fmt: skip


def head_of(folder: Folder) -> JournalHead | None:
    """What a journal says of itself; None: it is not whole.

    Raises:
        TargetError: It is of another pgdyno, or cannot be read.
    """
    if not folder.has(_STATE):
        return None
    head = from_json(JournalHead, folder.read(_STATE))
    if head.version != VERSION:
        raise TargetError(
            f"journal {folder.path} has version {head.version}, this pgdyno reads {VERSION}",
            "Use the pgdyno that wrote it.",
        )
    return head


def said(folder: Folder, head: JournalHead, state: JournalState) -> JournalHead:
    """Write down how far a journal came.

    Raises:
        TargetError: It cannot be written.
    """
    return _told(folder, JournalHead(**{**asdict(head), "state": state}))


def runs_of(folder: Folder, head: JournalHead) -> Iterator[tuple[Run, bytes, bytes]]:
    """Each run with its old and its new bytes, as they were written down.

    Raises:
        TargetError: The journal is damaged: nothing of it may be used.
    """
    pages, runs = folder.open(_PAGES), folder.open(_RUNS)
    with os.fdopen(pages, "rb") as old_and_new, os.fdopen(runs, "rb") as lines:
        if hashlib.file_digest(lines, "sha256").hexdigest() != head.runs_sha256:
            raise _damaged(folder, "its list of runs")
        lines.seek(0)
        for line in lines:
            run = from_json(Run, line.decode())
            size = len(run.lsns) * head.block_bytes
            old_and_new.seek(run.at)
            both = old_and_new.read(2 * size)
            if hashlib.sha256(both).hexdigest() != run.sha256:
                raise _damaged(folder, f"block {run.first_block} of {run.path}")
            yield run, both[:size], both[size:]


def _damaged(folder: Folder, what: str) -> TargetError:
    return TargetError(
        f"journal {folder.path} is damaged: {what} is not what was written",
        "Use nothing of it: rebuild the cluster from the standby.",
    )


def _told(folder: Folder, head: JournalHead) -> JournalHead:
    folder.write(_STATE, json.dumps(asdict(head)), 0o600)
    folder.sync()
    return head


def _with(
    head: JournalHead, state: JournalState, runs: int, blocks: int, sums: hashlib._Hash
) -> JournalHead:
    found = {"state": state, "runs": runs, "blocks": blocks, "runs_sha256": sums.hexdigest()}
    return JournalHead(**{**asdict(head), **found})


def _write(handle: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
