"""The file that postgresql.conf includes: it decides `full_page_writes`, and goes with the kernel.

It lies in a folder in memory; where it is missing the server does not start. It goes when the
machine loses power, and only then. This module needs no server and no session, so that what must
work when nothing else does has no more.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pgdyno.access import user_name
from pgdyno.folders import Folder, owner_of
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser

RUN_FOLDER = Path("/run/pgdyno-guard")
"""Where it is unless said; made by systemd, or by root."""
INCLUDE = "run-pgdyno-guard-repair-first.conf"
"""All that a server says of why it does not start is the name of the file that is missing."""
Pages = Literal["on", "off"]

_WORD = "full_page_writes = "
_WORDS = """\
# Written by pgdyno guard, and by nobody else. This file goes when the machine loses power; then
# {data} has to be repaired before its server starts: pgdyno guard repair
{word}{pages}
"""
_MODE = 0o700  # of the folder; the server's user and root alone


def include_path(run_folder: Path, system_identifier: str) -> Path:
    """Where the file of a server lies."""
    return run_folder / system_identifier / INCLUDE


def require_makeable(run_folder: Path, user: OsUser) -> None:
    """As root, refuse to make a folder that is missing where another user's file says so.

    Raises:
        TargetError: It is missing, and not the usual one.
    """
    if user.is_other and run_folder != RUN_FOLDER and not run_folder.is_dir():
        raise TargetError(
            f"folder {run_folder} for the run files is missing",
            "Make it, also after each restart of the machine, before the guard is run as root.",
        )


@contextmanager
def run_folder_of(include: Path, user: OsUser, *, make: bool = False) -> Iterator[Folder | None]:
    """The folder in memory of one server; None: it is gone, with all that was in it.

    As root nothing is made or changed in it that its user could not: he can write the state that
    names it.

    Raises:
        TargetError: It cannot be made, or it is a link, or somebody else's.
    """
    above, name = include.parent.parent, include.parent.name
    if not above.is_dir():
        if not make:
            yield None
            return
        require_makeable(above, user)
    with Folder.made(above) if make else Folder.hold(above) as run:
        if not run.has(name):
            if not make:
                yield None
                return
            run.make(name, _MODE, owner_of(user)).close()
        with run.into(name) as folder:
            if folder.facts.st_uid != user.uid:
                raise TargetError(
                    f"folder {folder.path} belongs to user {user_name(folder.facts.st_uid)},"
                    f" expected {user.name}",
                    "Remove it, or name another folder for the run files.",
                )
            yield folder


def write_pages(
    directory: DataDirectory, include: Path, pages: Pages, *, make: bool = False
) -> None:
    """Let the server have full pages on or off from its next look at its configuration on.

    Args:
        directory: The data directory.
        include: The file.
        pages: `on` or `off`.
        make: Whether a file that is missing is made, which opens the interlock.

    Raises:
        TargetError: It cannot be written; or it is missing, and is not to be made.
    """
    with run_folder_of(include, directory.user, make=make) as folder:
        if folder is None or (not make and not folder.has(include.name)):
            raise TargetError(
                f"{include} is gone", "Did the machine restart? `pgdyno guard status` says more."
            )
        # Either has the same length, so that the one can be written over the other.
        text = _WORDS.format(data=directory.path, word=_WORD, pages=f"{pages:<3}")
        try:
            folder.write(include.name, text, 0o600, owner_of(directory.user))
        except TargetError:  # there may be no room for another file
            if pages == "off" or not _written_over(folder, include.name, text):
                raise


def _written_over(folder: Folder, name: str, text: str) -> bool:
    """Write over a file of ours in its place, which takes no room; tells whether that was done."""
    try:
        handle = os.open(name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder.handle)
    except OSError:
        return False
    try:
        data = text.encode()
        facts = os.fstat(handle)
        return (
            stat.S_ISREG(facts.st_mode)
            and facts.st_size == len(data)
            and os.pwrite(handle, data, 0) == len(data)
        )
    finally:
        os.close(handle)


def read_pages(directory: DataDirectory, include: Path) -> Pages | None:
    """What the file says; None: it is not there, and the server would not start.

    Raises:
        TargetError: It is a link, somebody else's, or says neither.
    """
    with run_folder_of(include, directory.user) as folder:
        if folder is None or not folder.has(include.name):
            return None
        text = folder.read(include.name, directory.user.uid)
    for line in reversed(text.splitlines()):
        if line.rstrip() == f"{_WORD}on":
            return "on"
        if line.rstrip() == f"{_WORD}off":
            return "off"
    raise TargetError(f"{include} says neither {_WORD}on nor off", "Somebody else wrote it.")
