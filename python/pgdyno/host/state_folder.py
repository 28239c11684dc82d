"""The folder of what must outlive everything else: the undo journal of this machine.

It is no cache: whoever empties PGDYNO_HOME must still be able to put the machine back. It holds
nothing else, only its owner writes it, and it is reached without following a link, so that nobody
can have root write, or believe, a journal of theirs.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pgdyno import access
from pgdyno.model.errors import TargetError

VARIABLE = "PGDYNO_HOST_STATE"
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the journal lies: root's under /var/lib, another user's among the states of programs.

    Raises:
        TargetError: The variable names no absolute path.
    """
    return access.state_path("pgdyno-host", VARIABLE, environ)


def open_folder(path: Path, *, make: bool) -> int | None:
    """Open a folder whose way only root and this user can change; returns a descriptor.

    Args:
        path: Absolute.
        make: Make what is missing of it, for this user alone.

    Returns:
        The descriptor, or None where it is missing and not to be made.

    Raises:
        TargetError: A part of the way is a link, or somebody else could put another one there.
        OSError: It cannot be made or entered.
    """
    at = os.open("/", _FOLDER)
    try:
        for depth, name in enumerate(path.parts[1:], start=2):
            here = Path(*path.parts[:depth])
            if make and not _is_there(name, at):
                with suppress(FileExistsError):  # another pgdyno was quicker
                    os.mkdir(name, 0o700, dir_fd=at)
                os.fsync(at)
            elif not _is_there(name, at):
                os.close(at)
                return None
            _refuse_link(name, at, here)
            at, above = os.open(name, _FOLDER, dir_fd=at), at
            os.close(above)
            _refuse_others(os.fstat(at), here)
    except BaseException:
        os.close(at)
        raise
    return at


def open_file(folder: int, name: str, shown: Path, flags: int) -> int | None:
    """Open a plain file of ours in such a folder; None where there is none and none is made.

    Raises:
        TargetError: It is a link, is not a plain file, has a second name, or others may write it.
        OSError: It cannot be opened.
    """
    try:
        handle = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600,
                         dir_fd=folder)  # fmt: skip
    except FileNotFoundError:
        return None
    except OSError:
        _refuse_link(name, folder, shown)
        raise
    try:
        require_ours(handle, shown)
    except BaseException:
        os.close(handle)
        raise
    return handle


def require_ours(handle: int, shown: Path) -> None:
    """Refuse an open file that somebody else could have written.

    Raises:
        TargetError: It is not a plain file, has a second name, or is not only ours to write.
    """
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
        raise TargetError(f"{shown} is not a plain file with one name", _HINT)
    if found.st_uid not in (0, os.geteuid()) or _others_write(found):
        raise TargetError(
            f"{shown} belongs to user {found.st_uid} with mode {found.st_mode & 0o777:03o}", _HINT
        )


_HINT = "What others could have written is not believed. Look at it, and move it away."


def _is_there(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _others_write(found: os.stat_result) -> bool:
    """An ordinary user's group is often nobody else; root believes no group but its own."""
    group = os.geteuid() == 0 and found.st_gid != 0
    return bool(found.st_mode & (stat.S_IWOTH | (stat.S_IWGRP if group else 0)))


def _refuse_link(name: str, folder: int, shown: Path) -> None:
    if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise TargetError(f"{shown} is a link", f"Name the folder itself: {VARIABLE}.")


def _refuse_others(found: os.stat_result, shown: Path) -> None:
    """In a sticky folder, as /tmp, others cannot take away what is ours."""
    sticky = found.st_mode & stat.S_ISVTX
    if found.st_uid not in (0, os.geteuid()) or (_others_write(found) and not sticky):
        raise TargetError(
            f"folder {shown} belongs to user {found.st_uid} with mode"
            f" {found.st_mode & 0o777:03o}, so that others could exchange what is in it",
            f"Name another one: {VARIABLE}.",
        )
