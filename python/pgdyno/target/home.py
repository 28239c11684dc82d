"""Where pgdyno keeps clusters and fixtures: folders that it made, marked, and has for itself.

The folders are ours and closed to others; only what is in a cluster belongs to the user that runs
PostgreSQL. A folder that was there before is never given another owner or mode, and one that holds
anything that is not ours is refused.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.access import stranger_on
from pgdyno.folders import MARK, Folder, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.model.units import bytes_text
from pgdyno.shell import OsUser

FIXTURES, WORK, BUILDS = "fixtures", "work", "builds"
LOCK = "lock"
_PLACE = "pgdyno-work"
_NEEDS_ANOTHER = "Set PGDYNO_HOME to a folder that is empty, or not there yet."
# What lay in the homes of versions that made no marks: it may be one of those.
_EARLIER = (FIXTURES, WORK, BUILDS, "calibration.json", "host-journal.jsonl", LOCK)


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


def open_home(path: Path) -> Folder:
    """The home, made where it is missing; an empty folder becomes one as it is.

    Raises:
        TargetError: It holds what is not ours, cannot be made, or, as root, others could change it.
    """
    try:
        folder = Folder.made(path)
    except TargetError as error:
        raise TargetError(error.fact, error.hint or "Set PGDYNO_HOME to another folder.") from error
    try:
        folder.require_closed()
        if os.geteuid() == 0 and (where := stranger_on(path)):
            raise TargetError(
                f"PGDYNO_HOME is {path}, and others than root can change {where}",
                "As root, name a folder that only root can change.",
            )
        if not folder.marked() and folder.names():
            raise _unmarked(folder)
        folder.mark("home")
    except BaseException:
        folder.close()
        raise
    return folder


@contextmanager
def locked_home(path: Path) -> Iterator[Folder]:
    """The home for oneself.

    Raises:
        TargetError: As `open_home`; or another pgdyno has it.
    """
    with open_home(path) as folder:
        lock = lock_folder(folder)
        try:
            yield folder
        finally:
            os.close(lock)


def lock_folder(folder: Folder) -> int:
    """Take a folder of ours for oneself; returns what holds the lock until it is closed.

    Raises:
        TargetError: Another pgdyno has it.
    """
    lock = folder.lock(LOCK)
    if lock is None:
        raise TargetError(
            f"another pgdyno works in {folder.path}",
            hint="Wait for it, or set PGDYNO_HOME to another folder; two would disturb each other.",
        )
    return lock


def our_folder(above: Folder, name: str, *, adopt: bool = True) -> Folder:
    """A folder of ours: made and marked, or marked before.

    Args:
        above: Where it lies.
        name: Of the folder.
        adopt: Whether an empty one without a mark may become ours: in a folder of ours it is what
            a kill left. Elsewhere it is somebody's, and so it appears under its name with its mark.

    Raises:
        TargetError: There is something of that name that is not marked as ours.
    """
    if above.has(name):
        folder = above.into(name)
    else:
        folder = above.make(name) if adopt else above.appear(name)
    try:
        folder.require_closed()
        if not folder.marked() and (folder.names() or not adopt):
            raise TargetError(
                f"{folder.path} is there already, and is not marked as pgdyno's",
                "Remove it yourself, or name another folder.",
            )
        if adopt and not folder.marked():  # a kill may have come before it was opened to others
            os.fchmod(folder.handle, 0o755)
        folder.mark(name)
    except BaseException:
        folder.close()
        raise
    return folder


def _unmarked(folder: Folder) -> TargetError:
    """Why a folder without a mark is no home, and what makes an earlier pgdyno's home one.

    Names prove nothing: somebody's own `work/data` would be removed as what a run had left.
    """
    strange = [name for name in folder.names() if name not in _EARLIER]
    fact = (
        f"folder {folder.path} holds {(strange or folder.names())[0]},"
        " and is not marked as pgdyno's"
    )
    if strange:
        return TargetError(fact, _NEEDS_ANOTHER)
    inner = [folder.path / name for name in (FIXTURES, WORK, BUILDS) if folder.has(name)]
    marks = shlex.join([str(one / MARK) for one in (folder.path, *inner)])
    return TargetError(
        fact,
        f"{_NEEDS_ANOTHER} Only if it is the home of an earlier pgdyno, and nothing else was put"
        f" there, mark it: touch {marks}",
    )


@dataclass(frozen=True, slots=True)
class StageFolder:
    """A folder of ours within one that a stage names, taken for the clusters of its trials."""

    outside: Folder
    folder: Folder
    lock: int

    def leave(self) -> None:
        """Remove it, and let others have it."""
        try:
            self.outside.disappear(self.folder.path.name)
        finally:
            os.close(self.lock)
            self.folder.close()
            self.outside.close()


def take_stage_folder(path: Path, apart: Path) -> StageFolder:
    """Take a folder of ours within one that a stage names.

    Args:
        path: The folder that the stage names.
        apart: The home, which it may not lie in.

    Raises:
        TargetError: There is no such folder, something else of that name, or another pgdyno in it.
    """
    if not path.is_dir():
        raise TargetError(f"there is no folder {path}", hint="Make it, or name another one.")
    if path.resolve().is_relative_to(apart.resolve()):
        raise TargetError(
            f"folder {path} lies in {apart}, which pgdyno keeps for itself", "Name another one."
        )
    outside = Folder.hold(path)
    try:
        folder = our_folder(outside, _PLACE, adopt=False)
        try:
            return StageFolder(outside, folder, lock_folder(folder))
        except BaseException:
            folder.close()
            raise
    except BaseException:
        outside.close()
        raise


def require_room(folder: Path, needed_bytes: int) -> None:
    """Refuse a folder whose file system is too full for a copy of the data.

    Raises:
        TargetError: With both values.
    """
    free = shutil.disk_usage(folder).free
    if free < needed_bytes:
        raise TargetError(
            f"{folder} has {bytes_text(free)} free, the data alone are {bytes_text(needed_bytes)}",
            hint="Name a folder with more room, or a smaller scale.",
        )


def made_for(path: Path, user: OsUser, mode: int = 0o700) -> Path:
    """Make a new folder for the user who runs PostgreSQL, in one of ours.

    Raises:
        TargetError: It is there already, cannot be made, or lies where the user cannot go.
    """
    require_reachable(path.parent, user)
    with Folder.hold(path.parent) as above:
        above.make(path.name, mode, owner_of(user)).close()
    return path


def require_reachable(path: Path, user: OsUser) -> None:
    """Refuse a folder that the user who runs PostgreSQL cannot go to.

    Raises:
        TargetError: With the first one on the way that is closed.
    """
    if closed := closed_folder(path, user):
        raise TargetError(
            f"folder {closed} is closed to user {user.name}, who runs PostgreSQL",
            hint="Set PGDYNO_HOME to a folder that this user can reach.",
        )


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
    """Remove a folder of ours with everything in it; a missing one is fine.

    Raises:
        TargetError: It is a link, or something in it cannot be removed.
    """
    if path.parent.is_dir():
        with Folder.hold(path.parent) as above:
            above.remove_folder(path.name)
