"""Who could change what a path leads to: the question behind every file that root opens or runs.

A name is a promise that anybody who may write to the folder above can break: between a look at a
file and its opening it becomes a link to another one. Here folders are opened link by link, and
judged by what was opened. What is done in them then is in `folders`.
"""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from pgdyno.model.errors import TargetError
from pgdyno.model.mount_words import mount_word

_CODE = Path(__file__).parent
_LINKS_MAX = 40  # as the kernel
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


def trusted_users() -> frozenset[int]:
    """Who has this process's rights anyway: root, itself, and who may change its program."""
    return frozenset({0, os.geteuid(), _CODE.stat().st_uid})


def is_closed(facts: os.stat_result, *, sticky_holds: bool = True) -> bool:
    """Whether nobody but trusted users can change a file, or the names in a folder.

    Args:
        facts: Of what was opened.
        sticky_holds: Count a folder like /tmp as closed: there others cannot rename what is ours,
            but they can be there first.
    """
    if facts.st_uid not in trusted_users():
        return False
    code = _CODE.stat()
    known = (0, code.st_gid) if code.st_mode & stat.S_IWGRP else (0,)
    by_group = facts.st_mode & stat.S_IWGRP and facts.st_gid not in known
    if not by_group and not facts.st_mode & stat.S_IWOTH:
        return True
    return sticky_holds and stat.S_ISDIR(facts.st_mode) and bool(facts.st_mode & stat.S_ISVTX)


def open_folder(path: Path) -> int:
    """Open a folder, and follow only links that no stranger could have put there.

    Returns:
        A descriptor of the folder itself; whoever swaps names above it, it stays this folder.

    Raises:
        TargetError: A link on the way lies where other users can change it, or belongs to one.
        OSError: It is not there, is not a folder, or is closed to us.
    """
    here = os.open("/", _LOOK)
    try:
        for name, link, above in _steps(path):
            facts = os.fstat(link)
            if stat.S_ISLNK(facts.st_mode) and not _may_follow(facts, above):
                raise TargetError(
                    f"{path} leads through the link {name}, which other users can change",
                    "Name the folder that it leads to, without links of others on the way.",
                )
            os.close(here)
            here = os.dup(link)
        return os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def stranger_on(path: Path) -> Path | None:
    """The first folder on the way to a path whose names somebody else could change, or the path.

    Raises:
        OSError: It is not there.
    """
    for name, link, above in _steps(path):
        if not is_closed(above):
            return name.parent
        if os.fstat(link).st_uid not in trusted_users():
            return name
    return None if is_closed(path.stat()) else path


def stranger_on_program(path: Path) -> Path | None:
    """The same for a program that root is to run: it lies in no folder like /tmp itself.

    Folders of ours in one will do: nobody else can rename them, or have put them there. A file of
    root's can be anybody's link to another program of root's.

    Raises:
        OSError: It is not there.
    """
    folder = path.resolve().parent
    return stranger_on(path) or (None if is_closed(folder.stat(), sticky_holds=False) else folder)


def is_roots_folder(path: str) -> bool:
    """Whether programs may be looked for in a folder: it is named from `/`, and no stranger's."""
    folder = Path(path)
    try:
        closed = stranger_on(folder) is None and is_closed(folder.stat(), sticky_holds=False)
        return closed and folder.is_absolute()
    except OSError:
        return False


def user_name(uid: int) -> str:
    """What a user is called, or the number."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def mount_points() -> list[tuple[Path, str]]:
    """Where file systems are mounted for this process, and of which source; see proc(5)."""
    found = []
    for line in Path("/proc/self/mountinfo").read_bytes().splitlines():
        head, _, tail = os.fsdecode(line).partition(" - ")
        point, source = map(mount_word, (head.split(" ")[4], tail.split(" ")[1]))
        found.append((Path(point), source))
    return found


def require_unmounted(handle: int, *, itself: bool) -> None:
    """Refuse to empty an open folder in which something is mounted: that may be anybody's.

    Args:
        handle: Of the folder.
        itself: Also where the folder is what was mounted.

    Raises:
        TargetError: Something is.
    """
    here = Path(os.readlink(f"/proc/self/fd/{handle}"))
    for point, _ in mount_points():
        if here in point.parents or (itself and point == here):
            raise TargetError(
                f"{point} is a mount in a folder that is to be removed, and may be anybody's",
                f"Unmount it (umount {point}); nothing in it was removed.",
            )


def _may_follow(link: os.stat_result, above: os.stat_result) -> bool:
    return link.st_uid in trusted_users() and is_closed(above)


def _steps(path: Path) -> Iterator[tuple[Path, int, os.stat_result]]:
    """Every name on the way to a path: where it is, opened, and the facts of the folder above.

    Links are given before what they lead to. A descriptor is closed when the next one is asked for.
    """
    shown, todo = Path("/"), list(reversed(path.absolute().parts[1:]))
    here, links = os.open("/", _LOOK), 0
    try:
        while todo:
            part = todo.pop()
            above = os.fstat(here)
            link = os.open(part, _LOOK, dir_fd=here)
            try:
                shown = shown / part
                yield shown, link, above
                if not stat.S_ISLNK(os.fstat(link).st_mode):
                    os.close(here)
                    here = os.dup(link)
                    continue
                links += 1
                if links > _LINKS_MAX:
                    raise OSError(40, os.strerror(40), str(path))
                target = Path(os.readlink("", dir_fd=link))
                shown = shown.parent
                if target.is_absolute():
                    os.close(here)
                    shown, here = Path("/"), os.open("/", _LOOK)
                todo.extend(reversed(target.parts[1:] if target.is_absolute() else target.parts))
            finally:
                os.close(link)
    finally:
        os.close(here)


def state_path(name: str, variable: str, environ: Mapping[str, str]) -> Path:
    """Where what must outlive everything lies: root's under /var/lib, another's among his states.

    Args:
        name: Of the folder there.
        variable: Of the environment, which may name another one.
        environ: The environment.

    Raises:
        TargetError: The variable names no absolute path.
    """
    if named := environ.get(variable):
        if not Path(named).is_absolute():
            raise TargetError(f"{variable} is {named!r}, expected an absolute path")
        return Path(named)
    if os.geteuid() == 0:
        return Path("/var/lib") / name
    return Path(environ.get("XDG_STATE_HOME") or str(Path.home() / ".local/state"), name)
