"""Files of relations on a cluster that is not running: read and written in place, nothing followed.

As root they are opened name by name without links, and have to be regular files of whoever owns the
data, under one name: else that owner could lead root's writes elsewhere. A tablespace is a link by
its nature; where it leads, the same is asked.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgdyno.access import user_name
from pgdyno.folders import Folder, failing
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import reason

_SPACES = "pg_tblspc"


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
        TargetError: It is a link, no regular file, has several names, or is somebody else's.
    """
    *folders, name = path.split("/")
    with _folder(data, folders) as folder:
        handle = None if folder is None else _file(folder, name, data.facts.st_uid, writes)
    try:
        yield handle
    finally:
        if handle is not None:
            os.close(handle)


@contextmanager
def _folder(data: Folder, names: list[str]) -> Iterator[Folder | None]:
    """The folder below the data directory; None: there is none."""
    current = data.again()
    try:
        for at, name in enumerate(names):
            if not current.has(name):
                yield None
                return
            is_space = at == 1 and names[0] == _SPACES
            after = _linked(current, name) if is_space else current.into(name)
            current.close()
            current = after
        yield current
    finally:
        current.close()


def _linked(spaces: Folder, name: str) -> Folder:
    """Where a tablespace lies."""
    with failing(f"read link {spaces.path / name}"):
        if not stat.S_ISLNK(os.lstat(name, dir_fd=spaces.handle).st_mode):
            return spaces.into(name)  # one made in place
        leads_to = Path(os.readlink(name, dir_fd=spaces.handle))
    with failing(f"open tablespace {leads_to}"):
        return Folder.hold(spaces.path / leads_to)


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


def sync_file(handle: int, path: str) -> None:
    """Wait until a file is on the disk.

    Raises:
        TargetError: The disk failed.
    """
    with failing(f"sync {path}"):
        os.fsync(handle)
