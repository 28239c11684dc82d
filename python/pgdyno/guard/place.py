"""The guarded data directory, and the folder in memory whose files go with the kernel.

In the folder lies the file that postgresql.conf includes: it decides `full_page_writes`, and where
it is missing the server does not start. It goes when the machine loses power, and only then. This
module needs no server and no session, so that what must work when nothing else does has no more.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgdyno.access import user_name
from pgdyno.folders import Folder, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser
from pgdyno.target.leftover_server import Postmaster, server_on

RUN_FOLDER = Path("/run/pgdyno-guard")
"""Where it is unless said; made by systemd, or by root."""
INCLUDE = "run-pgdyno-guard-repair-first.conf"
"""All that a server says of why it does not start is the name of the file that is missing."""
Pages = Literal["on", "off"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_WORD = "full_page_writes = "
_WORDS = """\
# Written by pgdyno guard, and by nobody else. This file goes when the machine loses power; then
# {data} has to be repaired before its server starts: pgdyno guard repair
{word}{pages}
"""
_MODE = 0o700  # of the folder; the server's user and root alone


@dataclass(frozen=True, slots=True)
class Place:
    """A data directory and who owns it, which is who runs the server."""

    data: Path
    user: OsUser

    @contextmanager
    def opened(self) -> Iterator[Folder]:
        """The data directory."""
        with Folder.hold(self.data) as folder:
            yield folder

    @contextmanager
    def server(self) -> Iterator[Postmaster | None]:
        """The server that runs on it; None: none does."""
        with self.opened() as folder, server_on(folder, self.user, timed=False) as found:
            yield found

    def reload(self) -> bool:
        """Have the server read its configuration again; tells whether one runs."""
        with self.server() as found:
            if found is not None:
                found.reload()
            return found is not None


def place_of(data: Path) -> Place:
    """The place of a data directory.

    Raises:
        TargetError: It is none, or neither ours nor are we root.
    """
    data = data.absolute()
    with Folder.hold(data) as folder:
        facts = folder.facts
        if not {"PG_VERSION", "global"} <= set(folder.names()):
            raise TargetError(
                f"{data} is no data directory: it holds no PG_VERSION and no global",
                "Name what `SHOW data_directory` says on the primary.",
            )
    who = user_name(facts.st_uid)
    if os.geteuid() not in (0, facts.st_uid):
        raise TargetError(
            f"{data} belongs to user {who}, and this is user {user_name(os.geteuid())}",
            f"Run the guard as {who}, or as root.",
        )
    return Place(data, OsUser(who, facts.st_uid, facts.st_gid))


def boot_id() -> str:
    """The name of this life of the kernel: another one after every restart of the machine."""
    return _BOOT_ID.read_text().strip()


def since_boot_s() -> float:
    """Seconds since the machine began: the same for all processes, whatever a clock is set to."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def include_path(run_folder: Path, system_identifier: str) -> Path:
    """Where the file of a server lies."""
    return run_folder / system_identifier / INCLUDE


@contextmanager
def run_folder_of(include: Path, user: OsUser, *, make: bool = False) -> Iterator[Folder | None]:
    """The folder in memory of one server; None: it is gone, with all that was in it.

    Raises:
        TargetError: It cannot be made, or it is a link, or somebody else's.
    """
    above, name = include.parent.parent, include.parent.name
    if not above.is_dir() and not make:
        yield None
        return
    with Folder.made(above) if make else Folder.hold(above) as run:
        if not run.has(name):
            if not make:
                yield None
                return
            run.make(name, _MODE, owner_of(user)).close()
        with run.into(name) as folder:
            if folder.facts.st_uid not in (user.uid, os.geteuid()):
                raise TargetError(
                    f"folder {folder.path} belongs to user {user_name(folder.facts.st_uid)},"
                    f" expected {user.name}",
                    "Remove it, or name another folder for the run files.",
                )
            yield folder


def write_pages(place: Place, include: Path, pages: Pages, *, make: bool = False) -> None:
    """Let the server have full pages on or off from its next look at its configuration on.

    Args:
        place: The data directory.
        include: The file.
        pages: `on` or `off`.
        make: Whether a file that is missing is made, which opens the interlock.

    Raises:
        TargetError: It cannot be written; or it is missing, and is not to be made.
    """
    with run_folder_of(include, place.user, make=make) as folder:
        if folder is None or (not make and not folder.has(include.name)):
            raise TargetError(
                f"{include} is gone", "Did the machine restart? `pgdyno guard status` says more."
            )
        # Either has the same length, so that the one can be written over the other.
        text = _WORDS.format(data=place.data, word=_WORD, pages=f"{pages:<3}")
        try:
            folder.write(include.name, text, 0o600, owner_of(place.user))
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


def read_pages(place: Place, include: Path) -> Pages | None:
    """What the file says; None: it is not there, and the server would not start.

    Raises:
        TargetError: It is a link, somebody else's, or says neither.
    """
    with run_folder_of(include, place.user) as folder:
        if folder is None or not folder.has(include.name):
            return None
        text = folder.read(include.name, place.user.uid)
    for line in reversed(text.splitlines()):
        if line.rstrip() == f"{_WORD}on":
            return "on"
        if line.rstrip() == f"{_WORD}off":
            return "off"
    raise TargetError(f"{include} says neither {_WORD}on nor off", "Somebody else wrote it.")
