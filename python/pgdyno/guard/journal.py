"""What is overwritten, and with what, on the disk before the first byte is: a folder each time.

    pages    old bytes of a run, then the new ones, run after run
    runs     a line each: where it is in `pages`, which bytes of which file, LSNs, sums
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
from enum import IntEnum
from typing import Literal, TypeAlias

from pgdyno.folders import Folder, failing
from pgdyno.guard.data_directory import inode_in
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json
from pgdyno.model.repair import RedoBegin
from pgdyno.model.units import bytes_text

VERSION = 2
REPAIR, REJOIN = "repair", "rejoin"
"""What wrote a journal: its folder's name begins so."""
_NAME = re.compile(rf"({REPAIR}|{REJOIN})-(\d+)")
_PAGES, _RUNS, _STATE = "pages", "runs", "state"
_SPARE_BYTES = 16 << 20
_WRITE_BYTES = 1 << 20  # at once, not page by page
_encoded = json.JSONEncoder().encode
_STEP = re.compile(rb'"step": (\d+)\}\s*$')  # its last key; reading the rest takes 20 times longer

JournalState: TypeAlias = Literal["whole", "written", "undone"]
Ends: TypeAlias = tuple[int | None, int | None]
"""Bytes of a file before and after; None: it is not there."""


class Step(IntEnum):
    """In which order a journal is carried out, so that a call that was broken off can go on.

    At each of them pg_control, or backup_label where there is one, names WAL that is there. A
    repair has the first, that of files, and the last.
    """

    closed = 0  # no server starts
    wal = 1  # of the primary
    label = 2
    files = 3
    clearing = 4  # WAL of before
    settings = 5
    opened = 6


@dataclass(frozen=True, slots=True)
class JournalHead:
    """Of which cluster a journal is, and how far it came."""

    version: int
    state: JournalState
    system_identifier: str
    redo_lsn: str  # where redo began before
    end_lsn: str  # of a repair: of WAL; of a rejoin: where the copy's redo begins
    data: str  # the data directory, as it was called
    block_bytes: int
    runs: int
    blocks: int
    runs_sha256: str
    inode: int | None = None  # see `inode_in`; None: written before that was

    def is_of(self, data: Folder) -> bool:
        """Whether it is of these data: not of others of the same system, nor of a copy since."""
        is_here = os.path.realpath(self.data) == os.path.realpath(data.path)
        return is_here and self.inode in (None, inode_in(data))


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of a file that follow each other, and are overwritten."""

    at: int  # of the old bytes, in `pages`; the new ones follow
    path: str  # of the file, below the data directory
    first_block: int  # within the fork; of other files 0
    file_at: int  # bytes into the file
    old_bytes: int
    new_bytes: int
    lsns: tuple[str | None, ...]  # of the new pages; None: zeroes; empty: nobody asked
    sha256: str  # of old and new bytes
    ends: Ends | None = None  # None: the file is there, and keeps its length
    step: int = 0  # those of a lower one are on the disk before


class JournalWriter:
    """A journal that is being written; the cluster is not touched meanwhile."""

    def __init__(self, folder: Folder) -> None:
        """Begin it in an empty folder that only this user can read."""
        self._folder = folder
        self._pages, self._runs = self._file(_PAGES), self._file(_RUNS)
        self._sum = hashlib.sha256()
        self._unwritten = {self._pages: bytearray(), self._runs: bytearray()}
        self._at = self._blocks = self._count = 0

    def _file(self, name: str) -> int:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with failing(f"write {self._folder.path / name}"):
            return os.open(name, how, 0o600, dir_fd=self._folder.handle)

    def add(
        self, path: str, first_block: int, file_at: int, old: bytes, new: bytes,
        lsns: tuple[str | None, ...] = (), *, ends: Ends | None = None, step: int = 0,
    ) -> None:  # fmt: skip
        """Write down a run; see `Run`.

        Raises:
            TargetError: It cannot be written.
        """
        both = old + new
        run = {
            "at": self._at, "path": path, "first_block": first_block, "file_at": file_at,
            "old_bytes": len(old), "new_bytes": len(new), "lsns": lsns,
            "sha256": hashlib.sha256(both).hexdigest(), "ends": ends, "step": step,
        }  # fmt: skip
        line = _encoded(run).encode() + b"\n"
        self._put(self._pages, both)
        self._put(self._runs, line)
        self._sum.update(line)
        self._at += len(both)
        self._blocks += len(lsns)
        self._count += 1

    def _put(self, handle: int, data: bytes) -> None:
        self._unwritten[handle] += data
        if len(self._unwritten[handle]) >= _WRITE_BYTES:
            self._write_out(handle)

    def _write_out(self, handle: int) -> None:
        with failing(f"write {self._folder.path}"):
            _write(handle, self._unwritten[handle])
        self._unwritten[handle] = bytearray()

    @property
    def blocks(self) -> int:
        """Written down so far."""
        return self._blocks

    def seal(self, head: JournalHead) -> JournalHead:
        """Sync it, and say that it is whole.

        Raises:
            TargetError: The disk is full, or failed.
        """
        for handle in self._unwritten:
            self._write_out(handle)
        with failing(f"sync {self._folder.path}"):
            os.fsync(self._pages)
            os.fsync(self._runs)
        return _told(self._folder, _with(head, "whole", self._count, self._blocks, self._sum))

    def close(self) -> None:
        """Close its files."""
        for handle in (self._pages, self._runs):
            os.close(handle)


@contextmanager
def new(journals: Folder, kind: str = REPAIR) -> Iterator[tuple[Folder, JournalWriter]]:
    """A journal to be written; one that does not become whole is removed at the end.

    Args:
        journals: Those of this cluster.
        kind: What writes it.

    Raises:
        TargetError: It cannot be made.
    """
    taken = [_number(name) for name in _names(journals)]
    name = f"{kind}-{max(taken, default=0) + 1:04d}"
    with journals.make(name, 0o700) as folder:
        with failing(f"sync {journals.path}"):
            journals.sync()  # what is synced in it is lost with its name
        writer = JournalWriter(folder)
        try:
            yield folder, writer
        finally:
            writer.close()
            if not folder.has(_STATE):
                journals.remove_folder(name)


def unfinished(
    journals: Folder, begin: RedoBegin, data: Folder
) -> tuple[Folder, JournalHead] | None:
    """A whole journal of a repair whose bytes may not all be on the cluster.

    Those that were cut off before they were whole are removed.

    Raises:
        TargetError: It is of another state of these data: they were started in between.
    """
    for folder, head in _kept(journals, REPAIR):
        if head.state == "whole" and head.is_of(data):
            require_of(folder, head, begin)
            return folder, head
        folder.close()
    return None


def rejoining(journals: Folder, data: Folder) -> tuple[Folder, JournalHead] | None:
    """The latest whole journal of a rejoin of these data; those that were cut off are removed.

    Raises:
        TargetError: It is of another pgdyno, or cannot be read.
    """
    found = None
    for folder, head in _kept(journals, REJOIN):
        if head.state != "undone" and head.is_of(data):
            found = folder, head
        else:
            folder.close()
    return found


def is_rejoin(folder: Folder) -> bool:
    """Whether a rejoin wrote this journal, not a repair."""
    return folder.path.name.startswith(REJOIN)


def _kept(journals: Folder, kind: str) -> Iterator[tuple[Folder, JournalHead]]:
    """Whole journals, oldest first; those that are not are removed."""
    for name in _names(journals):
        if not name.startswith(kind):
            continue
        folder = journals.into(name)
        head = head_of(folder)
        if head is None:
            folder.close()
            journals.remove_folder(name)
        else:
            yield folder, head


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
            "The cluster was started since that repair. If that was broken off, pages may be torn:"
            " rebuild the cluster from the standby, by pg_basebackup into a new folder. If it is"
            f" known to be whole, remove {folder.path}, and call this again.",
        )


def latest(journals: Folder, data: Folder) -> tuple[Folder, JournalHead] | None:
    """The newest journal of these data that was carried out, even in part."""
    for name in reversed(_names(journals)):
        folder = journals.into(name)
        head = head_of(folder)
        if head is not None and head.state != "undone" and head.is_of(data):
            return folder, head
        folder.close()
    return None


def _names(journals: Folder) -> list[str]:
    return sorted(filter(_NAME.fullmatch, journals.names()), key=_number)


def _number(name: str) -> int:
    return int(name.partition("-")[2])


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


def head_for(begin: RedoBegin, end_lsn: str, data: Folder) -> JournalHead:
    """What a journal of this cluster will say, but for what it holds."""
    return JournalHead(
        VERSION, "whole", begin.system_identifier, begin.redo_lsn, end_lsn, str(data.path),
        begin.block_bytes, 0, 0, "", inode_in(data),
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


def steps_of(folder: Folder, head: JournalHead) -> list[int]:
    """The steps of a journal, in their order.

    Raises:
        TargetError: The journal is damaged: nothing of it may be used.
    """
    return sorted({_step_of(line) for line in _lines(folder, head)})


def runs_of(folder: Folder, head: JournalHead, step: int) -> Iterator[tuple[Run, bytes, bytes]]:
    """Each run of a step with its old and its new bytes, as they were written down.

    Raises:
        TargetError: The journal is damaged: nothing of it may be used.
    """
    with os.fdopen(folder.open(_PAGES), "rb", buffering=0) as old_and_new:
        for line in _lines(folder, head):
            if _step_of(line) != step:
                continue
            run = from_json(Run, line.decode())
            both = os.pread(old_and_new.fileno(), run.old_bytes + run.new_bytes, run.at)
            if hashlib.sha256(both).hexdigest() != run.sha256:
                raise _damaged(folder, f"byte {run.file_at} of {run.path}")
            yield run, both[: run.old_bytes], both[run.old_bytes :]


def _step_of(line: bytes) -> int:
    found = _STEP.search(line)
    return int(found[1]) if found else 0  # journals of before there were steps have none


def _lines(folder: Folder, head: JournalHead) -> Iterator[bytes]:
    with os.fdopen(folder.open(_RUNS), "rb") as lines:
        if hashlib.file_digest(lines, "sha256").hexdigest() != head.runs_sha256:
            raise _damaged(folder, "its list of runs")
        lines.seek(0)
        yield from lines


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


def _write(handle: int, data: bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
