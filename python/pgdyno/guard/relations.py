"""Files of a cluster that is not running: read and written in place, nothing followed.

As root they are opened name by name without links, and have to be regular files of whoever owns the
data, under one name: else that owner could lead root's writes elsewhere. A tablespace is a link by
its nature, and pg_wal may be one; where it leads, the same is asked. Paths that another machine
tells of lead nowhere but down: none of their names is `..`.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgdyno.access import user_name
from pgdyno.folders import Folder, failing, owner_of
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import reason
from pgdyno.model.text import one_line
from pgdyno.shell import OsUser

_SPACES, _WAL = "pg_tblspc", "pg_wal"
_NO_NAMES = ("", ".", "..")  # of what lies in a folder
_DEPTHS = {"base": 2, _SPACES: 4, "pg_replslot": 2}  # of folders that go with their last file
_GROUP_MAY_READ = 0o040


def names_of(path: str) -> list[str]:
    """The names on the way to a file below a data directory, the file's own last.

    Raises:
        TargetError: One of them leads elsewhere.
    """
    names = path.split("/")
    if any(one in _NO_NAMES or "\0" in one for one in names):
        raise TargetError(
            f"{one_line(path)!r} is no path of a file below a data directory",
            "No server of PostgreSQL tells of such a file: trust nothing that this one says.",
        )
    return names


@contextmanager
def opened(data: Folder, path: str, *, writes: bool) -> Iterator[int | None]:
    """A file of a relation.

    Args:
        data: The data directory.
        path: Below it.
        writes: Whether it is to be written.

    Yields:
        Its descriptor; None: there is no such file.

    Raises:
        TargetError: It is a link, no regular file, has several names, or is somebody else's; or the
            path does not lead down.
    """
    *folders, name = names_of(path)
    with held_folder(data, folders) as folder:
        handle = None if folder is None else _file(folder, name, data.facts.st_uid, writes)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def made(data: Folder, path: str) -> Iterator[int]:
    """A file to be written, made where it is missing, with the folders above it.

    Args:
        data: The data directory.
        path: Below it.

    Yields:
        Its descriptor.

    Raises:
        TargetError: As `opened`; or it cannot be made.
    """
    *folders, name = names_of(path)
    with held_folder(data, folders, makes=True) as folder:
        assert folder is not None
        handle = _file(folder, name, data.facts.st_uid, writes=True)
        if handle is None:
            handle = _new(folder, name, data.facts)
        try:
            yield handle
        finally:
            os.close(handle)


def removed(data: Folder, path: str) -> None:
    """Remove a file, and a database's or slot's folder that is empty then; a missing one is fine.

    Raises:
        TargetError: It cannot be removed, or the path does not lead down.
    """
    *folders, name = names_of(path)
    with held_folder(data, folders) as folder:
        if folder is None:
            return
        folder.remove(name)
        empties = len(folders) == _DEPTHS.get(folders[0] if folders else "") and not folder.names()
    if empties:
        with held_folder(data, folders[:-1]) as above, failing(f"remove folder {path}"):
            if above is not None:
                os.rmdir(folders[-1], dir_fd=above.handle)


def sync_folder(data: Folder, path: str) -> None:
    """Wait until the names in the folder of a file are on the disk; a missing one is fine.

    Raises:
        TargetError: The disk failed.
    """
    with held_folder(data, path.split("/")[:-1]) as folder:
        if folder is not None:
            with failing(f"sync {folder.path}"):
                folder.sync()


@contextmanager
def held_folder(data: Folder, names: list[str], *, makes: bool = False) -> Iterator[Folder | None]:
    """The folder below the data directory; None: there is none.

    Args:
        data: The data directory.
        names: From there on.
        makes: Whether those that are missing are made.

    Raises:
        TargetError: One is a link where none belongs, or leads to somebody else's folder.
    """
    current = data.again()
    try:
        for at, name in enumerate(names):
            if not current.has(name):
                if not makes:
                    yield None
                    return
                mode = 0o750 if data.facts.st_mode & _GROUP_MAY_READ else 0o700
                current.make(name, mode, owner_of(_owner(data.facts))).close()
            leads = (at == 1 and names[0] == _SPACES) or (at == 0 and name == _WAL)
            after = linked(current, name) if leads else current.into(name)
            current.close()
            current = after
        yield current
    finally:
        current.close()


def _owner(facts: os.stat_result) -> OsUser:
    return OsUser("", facts.st_uid, facts.st_gid)


def linked(above: Folder, name: str) -> Folder:
    """Where a tablespace, or WAL, lies.

    Raises:
        TargetError: It is somebody else's folder: a server's own user could lead us there.
    """
    with failing(f"read link {above.path / name}"):
        if not stat.S_ISLNK(os.lstat(name, dir_fd=above.handle).st_mode):
            return above.into(name)  # one made in place
        leads_to = Path(os.readlink(name, dir_fd=above.handle))
    with failing(f"open {leads_to}"):
        folder = Folder.hold(above.path / leads_to)
    ours, theirs = above.facts.st_uid, folder.facts.st_uid
    if ours == theirs:
        return folder
    folder.close()
    raise TargetError(
        f"{above.path / name} leads to {leads_to}, which belongs to user {user_name(theirs)}, not"
        f" to {user_name(ours)}",
        "Repair a data directory as its server left it.",
    )


def _file(folder: Folder, name: str, owner: int, writes: bool) -> int | None:
    how = (os.O_RDWR if writes else os.O_RDONLY) | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    path = folder.path / name
    try:
        handle = os.open(name, how, dir_fd=folder.handle)
    except OSError as error:
        if error.errno == errno.ENOENT:
            return None
        raise TargetError(f"open {path}: {reason(error)}") from error
    facts = os.fstat(handle)
    if stat.S_ISREG(facts.st_mode) and facts.st_uid == owner and facts.st_nlink == 1:
        return handle
    os.close(handle)
    raise TargetError(
        f"{path} is no regular file of user {user_name(owner)} under one name",
        "Repair a data directory as its server left it.",
    )


def _new(folder: Folder, name: str, data: os.stat_result) -> int:
    how = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with failing(f"make {folder.path / name}"):
        handle = os.open(name, how, 0o600, dir_fd=folder.handle)
        if data.st_mode & _GROUP_MAY_READ:
            os.fchmod(handle, 0o640)
        if (owner := owner_of(_owner(data))) is not None:
            os.fchown(handle, owner.uid, owner.gid)
    return handle


def sync_file(handle: int, path: str) -> None:
    """Wait until a file is on the disk.

    Raises:
        TargetError: The disk failed.
    """
    with failing(f"sync {path}"):
        os.fsync(handle)
