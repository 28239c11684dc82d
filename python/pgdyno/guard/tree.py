"""Files of a data directory: which of them a copy has, and those on this machine."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass

from pgdyno.folders import Folder
from pgdyno.guard.relations import held_folder, linked
from pgdyno.model.errors import TargetError
from pgdyno.model.repair import RedoBegin
from pgdyno.model.text import one_line

COPIED = (
    "base", "global", "pg_tblspc", "pg_xact", "pg_multixact", "pg_commit_ts", "pg_twophase",
    "pg_logical",
)  # fmt: skip
"""What a copy has; the rest a server makes anew, or is this machine's own, as its configuration."""
CONTROL = "global/pg_control"
FILE_BYTES_MAX = 256 << 20
"""Of a file that is none of a relation: it is read whole, and those of a server are far smaller."""
_RELATION = re.compile(
    r"(?P<stem>(?:global|base/\d+|pg_tblspc/\d+/PG_[^/]+/\d+)/\d+)"
    r"(?:_(?P<fork>fsm|vm|init))?(?:\.(?P<part>\d+))?"
)
_PASSING = re.compile(r"(?:^|/)(?:pgsql_tmp|pg_internal\.init|t\d+_\d+)")


@dataclass(frozen=True, slots=True)
class Relation:
    """Which file of a relation one is."""

    stem: str  # the path of the first file of its main fork
    fork: str  # "main", "fsm", "vm", "init"
    part: int  # 1 GiB each


def relation_of(path: str) -> Relation | None:
    """What a path is a file of; None: of no relation."""
    found = _RELATION.fullmatch(path)
    if found is None:
        return None
    return Relation(found["stem"], found["fork"] or "main", int(found["part"] or 0))


@dataclass(frozen=True, slots=True)
class Trees:
    """Files of the source and of this machine, with their bytes."""

    source: dict[str, int]  # those that a copy has
    local: dict[str, int]  # those that are not left alone

    @property
    def removed(self) -> list[str]:
        """What the source does not have."""
        return [path for path in self.local if path not in self.source]


def trees_of(source: dict[str, int], local: dict[str, int], version: str) -> Trees:
    """What a copy takes, and what it takes the place of.

    What is temporary is neither, nor what the source has of an unlogged relation, but for its init
    fork: a server that starts removes it, and makes the rest of that.

    Args:
        source: All files below `COPIED` there.
        local: The same here.
        version: The folder of their relations in a tablespace.
    """
    unlogged = {
        found.stem for path in source if (found := relation_of(path)) and found.fork == "init"
    }

    def belongs(path: str) -> bool:
        if path == CONTROL or _PASSING.search(path):
            return False
        if path.startswith("pg_tblspc/") and path.split("/")[2:3] != [version]:
            return False
        found = relation_of(path)
        return found is None or found.stem not in unlogged or found.fork == "init"

    kept = [{path: size for path, size in files.items() if belongs(path)}
            for files in (source, local)]  # fmt: skip
    return Trees(*kept)


def require_sizes(source: dict[str, int], begin: RedoBegin) -> None:
    """Refuse sizes that no file of a data directory has, before room is made for them.

    Args:
        source: Files of the source, with the bytes that it says they have.
        begin: Of the cluster, whose files of relations are cut where the source's are.

    Raises:
        TargetError: The source tells of one.
    """
    for path, bytes_ in source.items():
        of_relation = relation_of(path) is not None
        most = begin.segment_blocks * begin.block_bytes if of_relation else FILE_BYTES_MAX
        if not 0 <= bytes_ <= most:
            raise _of_size(f"{one_line(path)} of the primary", bytes_, most)


def require_size(path: str, bytes_: int) -> None:
    """Refuse a file on this machine that is too large to be read whole.

    Raises:
        TargetError: It is.
    """
    if bytes_ > FILE_BYTES_MAX:
        raise _of_size(path, bytes_, FILE_BYTES_MAX)


def _of_size(what: str, bytes_: int, most: int) -> TargetError:
    return TargetError(
        f"{what} has {bytes_} bytes, expected are {most} at most",
        "If it is a file of PostgreSQL's, make a new copy: pg_basebackup.",
    )


def files_below(data: Folder, top: str) -> dict[str, int]:
    """Files below a folder of a data directory that no server runs on, with their bytes.

    Raises:
        TargetError: A folder cannot be read, or what lies there is a link where none belongs.
    """
    found: dict[str, int] = {}
    with held_folder(data, [top]) as folder:
        if folder is not None:
            _walk(folder, top, found)
    return found


def _walk(folder: Folder, path: str, found: dict[str, int]) -> None:
    for name in folder.names():
        below = f"{path}/{name}"
        facts = os.lstat(name, dir_fd=folder.handle)
        if stat.S_ISREG(facts.st_mode):
            found[below] = facts.st_size
        elif stat.S_ISDIR(facts.st_mode):
            with folder.into(name) as inner:
                _walk(inner, below, found)
        elif stat.S_ISLNK(facts.st_mode):
            if path != "pg_tblspc":
                raise TargetError(f"{folder.path / name} is a link", "Put there what it leads to.")
            with linked(folder, name) as space:
                _walk(space, below, found)
