"""What is overwritten, and with what, on the disk before the first byte is: a folder each time.

    pages    old bytes of a run, then the new ones, run after run
    groups   runs of a file in a line: where they are in `pages`, their places, LSNs, a sum
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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Literal, NamedTuple, TypeAlias

from pgdyno.folders import Folder, failing
from pgdyno.guard.data_directory import inode_in
from pgdyno.model.errors import TargetError
from pgdyno.model.record_json import from_json, json_object
from pgdyno.model.repair import RedoBegin
from pgdyno.model.units import bytes_text

VERSION = 3
REPAIR, REJOIN = "repair", "rejoin"
"""What wrote a journal: its folder's name begins so."""
_NAME = re.compile(rf"({REPAIR}|{REJOIN})-(\d+)")
_PAGES, _GROUPS, _STATE = "pages", "groups", "state"
_SPARE_BYTES = 16 << 20
_GROUP_BYTES = 4 << 20  # from so many on it is written: a sum and a line by the page take longer

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
    groups_sha256: str
    inode: int  # see `inode_in`

    def is_of(self, data: Folder) -> bool:
        """Whether it is of these data: not of others of the same system, nor of a copy since."""
        is_here = os.path.realpath(self.data) == os.path.realpath(data.path)
        return is_here and self.inode == inode_in(data)


@dataclass(frozen=True, slots=True)
class Run:
    """Bytes of a file that follow each other, and are overwritten."""

    path: str  # of the file, below the data directory
    file_at: int  # bytes into the file
    ends: Ends | None  # None: the file is there, and keeps its length


class Place(NamedTuple):
    """Where a run of a group is."""

    first_block: int  # within the fork; of other files 0
    file_at: int
    old_bytes: int
    new_bytes: int


@dataclass
class Group:
    """Runs of a file that were written down one after another."""

    at: int  # of its bytes, in `pages`
    path: str
    ends: Ends | None
    step: int  # those of a lower one are on the disk before
    runs: list[Place] = field(default_factory=list)
    lsns: list[str | None] = field(default_factory=list)  # of new pages; None: zeroes
    sha256: str = ""  # of its bytes

    def is_of(self, path: str, ends: Ends | None, step: int) -> bool:
        """Whether a run of such a file belongs to it."""
        return (self.path, self.ends, self.step) == (path, ends, step)


class JournalWriter:
    """A journal that is being written; the cluster is not touched meanwhile."""

    def __init__(self, folder: Folder) -> None:
        """Begin it in an empty folder that only this user can read."""
        self._folder = folder
        self._pages, self._groups = self._file(_PAGES), self._file(_GROUPS)
        self._sum = hashlib.sha256()
        self._group: Group | None = None
        self._bytes = bytearray()  # of the group
        self._at = self._blocks = self._count = 0

    def _file(self, name: str) -> int:
        how = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with failing(f"write {self._folder.path / name}"):
            return os.open(name, how, 0o600, dir_fd=self._folder.handle)

    def add(
        self, path: str, first_block: int, file_at: int, old: bytes, new: bytes,
        lsns: Sequence[str | None] = (), *, ends: Ends | None = None, step: int = 0,
    ) -> None:  # fmt: skip
        """Write down a run.

        Args:
            path: Of its file, below the data directory.
            first_block: Its first one, within the fork; of other files 0.
            file_at: Bytes into the file.
            old: What is there.
            new: What comes there.
            lsns: Of the new pages; None: zeroes. Empty: nobody asked.
            ends: Of the file; None: it is there, and keeps its length.
            step: See `Step`.

        Raises:
            TargetError: It cannot be written.
        """
        group = self._group
        if group is None or not group.is_of(path, ends, step) or len(self._bytes) >= _GROUP_BYTES:
            self._write_group()
            group = self._group = Group(self._at, path, ends, step)
        group.runs.append(Place(first_block, file_at, len(old), len(new)))
        group.lsns += lsns
        self._bytes += old
        self._bytes += new
        self._blocks += len(lsns)
        self._count += 1

    def _write_group(self) -> None:
        if self._group is None:
            return
        self._group.sha256 = hashlib.sha256(self._bytes).hexdigest()
        line = json.dumps(vars(self._group)).encode() + b"\n"
        self._sum.update(line)
        with failing(f"write {self._folder.path}"):
            _write(self._pages, self._bytes)
            _write(self._groups, line)
            # The disk begins now, and not when it is synced.
            os.posix_fadvise(self._pages, self._at, len(self._bytes), os.POSIX_FADV_DONTNEED)
        self._at += len(self._bytes)
        self._group, self._bytes = None, bytearray()

    @property
    def blocks(self) -> int:
        """Written down so far."""
        return self._blocks

    def seal(self, head: JournalHead) -> JournalHead:
        """Sync it, and say that it is whole.

        Raises:
            TargetError: The disk is full, or failed.
        """
        self._write_group()
        with failing(f"sync {self._folder.path}"):
            os.fsync(self._pages)
            os.fsync(self._groups)
        return _told(self._folder, _with(head, "whole", self._count, self._blocks, self._sum))

    def close(self) -> None:
        """Close its files."""
        for handle in (self._pages, self._groups):
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
    text = folder.read(_STATE)
    try:
        version = json_object(text).get("version")  # what else it says differs by that
        if version == VERSION:
            return from_json(JournalHead, text)
    except ValueError as error:
        raise _damaged(folder, "its state") from error
    raise TargetError(
        f"journal {folder.path} has version {version}, this pgdyno reads {VERSION}",
        "Use the pgdyno that wrote it.",
    )


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
    return sorted({one.step for one in _groups(folder, head)})


def runs_of(
    folder: Folder, head: JournalHead, step: int
) -> Iterator[tuple[Run, memoryview, memoryview]]:
    """Each run of a step with its old and its new bytes, as they were written down.

    Raises:
        TargetError: The journal is damaged: nothing of it may be used.
    """
    with os.fdopen(folder.open(_PAGES), "rb", buffering=0) as pages:
        for group in _groups(folder, head):
            if group.step != step:
                continue
            wanted = sum(one.old_bytes + one.new_bytes for one in group.runs)
            bytes_ = os.pread(pages.fileno(), wanted, group.at)
            if hashlib.sha256(bytes_).hexdigest() != group.sha256:
                raise _damaged(folder, f"byte {group.runs[0].file_at} of {group.path}")
            view, at = memoryview(bytes_), 0
            for one in group.runs:
                middle, end = at + one.old_bytes, at + one.old_bytes + one.new_bytes
                yield Run(group.path, one.file_at, group.ends), view[at:middle], view[middle:end]
                at = end


def _groups(folder: Folder, head: JournalHead) -> Iterator[Group]:
    with os.fdopen(folder.open(_GROUPS), "rb") as lines:
        if hashlib.file_digest(lines, "sha256").hexdigest() != head.groups_sha256:
            raise _damaged(folder, "its list of runs")
        lines.seek(0)
        for line in lines:
            yield from_json(Group, line.decode())


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
    found = {"state": state, "runs": runs, "blocks": blocks, "groups_sha256": sums.hexdigest()}
    return JournalHead(**{**asdict(head), **found})


def _write(handle: int, data: bytes | bytearray) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(handle, view) :]
