"""Trees of files, walked and copied by descriptors: who swaps names in them leads nobody astray."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

from pgdyno.folders import Folder, failing
from pgdyno.model.errors import TargetError

_TOP = PurePosixPath()
_DEPTH_MAX = 64  # PostgreSQL's has 8

Opener = Callable[[Folder, str], int]
"""Opens a file in a folder to be read; refuses what may not be."""


def files(
    folder: Folder, *, but: str | None = None, inside: PurePosixPath = _TOP
) -> Iterator[tuple[PurePosixPath, Folder]]:
    """Every file and link of a tree: its name from the top on, and the folder that holds it.

    Args:
        folder: The top.
        but: A name that is left out, with what is below it.
        inside: Where the folder is, from the top on.

    Raises:
        TargetError: A folder cannot be read, or there are too many in each other.
    """
    for name, facts in _entries(folder, but, len(inside.parts)):
        if stat.S_ISDIR(facts.st_mode):
            with folder.into(name) as inner:
                yield from files(inner, but=but, inside=inside / name)
        else:
            yield inside / name, folder


def link_target(folder: Folder, name: str) -> str | None:
    """Where a link leads; None: it is something else."""
    with failing(f"read {folder.path / name}"):
        if not stat.S_ISLNK(os.lstat(name, dir_fd=folder.handle).st_mode):
            return None
        return os.readlink(name, dir_fd=folder.handle)


def copy_tree(
    source: Folder, target: Folder, opened: Opener, *, but: str | None = None, depth: int = 0
) -> None:
    """Copy what is in a folder as ours: who still has one of the originals open changes no copy.

    Modes and times of files stay, but nobody else may write.

    Args:
        source: The top.
        target: An empty folder.
        opened: Opens each file.
        but: A name that is left out, with what is below it.
        depth: How many folders are above the top.

    Raises:
        TargetError: Something is refused, is neither file, link nor folder, or cannot be written.
    """
    for name, facts in _entries(source, but, depth):
        if stat.S_ISDIR(facts.st_mode):
            mode = stat.S_IMODE(facts.st_mode) & 0o755 | 0o700
            with source.into(name) as inner, target.make(name, mode) as copy:
                copy_tree(inner, copy, opened, but=but, depth=depth + 1)
        elif (where := link_target(source, name)) is not None:
            with failing(f"copy {source.path / name}"):
                os.symlink(where, name, dir_fd=target.handle)
        else:
            _copy_file(source, name, target, opened)


def _copy_file(folder: Folder, name: str, target: Folder, opened: Opener) -> None:
    with os.fdopen(opened(folder, name), "rb") as source, failing(f"copy {folder.path / name}"):
        facts = os.fstat(source.fileno())
        how = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_WRONLY
        handle = os.open(name, how, 0o600, dir_fd=target.handle)
        with os.fdopen(handle, "wb") as copy:
            shutil.copyfileobj(source, copy)
            copy.flush()
            os.fchmod(handle, stat.S_IMODE(facts.st_mode) & 0o755)
            os.utime(handle, ns=(facts.st_atime_ns, facts.st_mtime_ns))  # make goes by it


def _entries(folder: Folder, but: str | None, depth: int) -> Iterator[tuple[str, os.stat_result]]:
    if depth > _DEPTH_MAX:
        raise TargetError(f"{folder.path} lies too deep: below more than {_DEPTH_MAX}")
    for name in folder.names():
        if name != but:
            with failing(f"read {folder.path / name}"):
                facts = os.lstat(name, dir_fd=folder.handle)
            yield name, facts
