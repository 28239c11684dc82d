"""Where pgdyno keeps clusters and fixtures, and how their folders reach the user that runs them."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from pgdyno.model.errors import TargetError
from pgdyno.model.units import bytes_text
from pgdyno.shell import OsUser

_PLACE = "pgdyno-work"
_MARK = ".pgdyno"


def home(environ: dict[str, str] | None = None) -> Path:
    """The folder of everything that outlives a run: `PGDYNO_HOME`, or the user's cache.

    Root keeps it under /var/lib, where the user that runs PostgreSQL can reach it.
    """
    variables = os.environ if environ is None else environ
    if named := variables.get("PGDYNO_HOME"):
        return Path(named).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/pgdyno")
    cache = variables.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "pgdyno"


def owned_folder(path: Path, user: OsUser, mode: int = 0o700) -> Path:
    """Make a folder that `user` owns, and check that it can be reached.

    Raises:
        TargetError: It cannot be made, or a folder above it is closed to the user.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(mode)
        if user.is_other:
            os.chown(path, user.uid, user.gid)
    except OSError as error:
        raise TargetError(
            f"folder {path} cannot be made: {error}", hint="Set PGDYNO_HOME to another one."
        ) from error
    if closed := closed_folder(path.parent, user):
        raise TargetError(
            f"folder {closed} is closed to user {user.name}, who runs PostgreSQL",
            hint="Set PGDYNO_HOME to a folder that this user can reach.",
        )
    return path


def work_place(folder: Path, user: OsUser, needed_bytes: int) -> Path:
    """A folder of ours within one that a stage names, for the clusters of its trials.

    Raises:
        TargetError: There is no such folder, no room in it, or something else of that name.
    """
    if not folder.is_dir():
        raise TargetError(f"there is no folder {folder}", hint="Make it, or name another one.")
    free = shutil.disk_usage(folder).free
    place, mark = folder / _PLACE, folder / _PLACE / _MARK
    if place.exists() and not mark.exists():
        raise TargetError(
            f"{place} is there already, and is not marked as pgdyno's",
            hint="Remove it yourself, or name another folder.",
        )
    if not place.exists() and free < needed_bytes:
        raise TargetError(
            f"{folder} has {bytes_text(free)} free, the data alone are {bytes_text(needed_bytes)}",
            hint="Name a folder with more room, or a smaller scale.",
        )
    owned_folder(place, user)
    mark.touch()
    return place


def lock_home(home: Path) -> int:
    """Take a home for oneself; returns the open file that holds the lock until it is closed.

    Raises:
        TargetError: Another pgdyno has it.
    """
    handle = os.open(home / "lock", os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise TargetError(
            f"another pgdyno works in {home}",
            hint="Wait for it, or set PGDYNO_HOME to another folder; two would disturb each other.",
        ) from error
    return handle


def closed_folder(path: Path, user: OsUser) -> Path | None:
    """The first folder on the way to `path` that `user` may not enter, if any."""
    for folder in [*reversed(path.absolute().parents), path.absolute()]:
        facts = folder.stat()
        if facts.st_uid == user.uid:
            bit = 0o100
        elif facts.st_gid == user.gid:
            bit = 0o010
        else:
            bit = 0o001
        if not facts.st_mode & bit:
            return folder
    return None


def remove_folder(path: Path) -> None:
    """Remove a folder of ours with everything in it; a missing one is fine."""
    if path.exists():
        shutil.rmtree(path)
