"""The data directory of a guarded server, held open, and the server that runs on it, if one does.

This module needs no session, so that what must work when nothing else does has no more.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgdyno.access import user_name
from pgdyno.folders import Folder
from pgdyno.locks import try_lock
from pgdyno.model.errors import TargetError
from pgdyno.shell import OsUser
from pgdyno.target.leftover_server import Postmaster, server_on

_NAME_IT = "Name what `SHOW data_directory` says on the primary."


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """A data directory and who owns it, which is who runs the server."""

    path: Path
    user: OsUser

    @contextmanager
    def opened(self) -> Iterator[Folder]:
        """Held open."""
        with Folder.hold(self.path) as folder:
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


def data_directory(path: Path) -> DataDirectory:
    """The data directory at a path.

    Raises:
        TargetError: It is none, or neither ours nor are we root.
    """
    path = path.absolute()
    with Folder.hold(path, _NAME_IT) as folder:
        facts = folder.facts
        if not {"PG_VERSION", "global"} <= set(folder.names()):
            raise TargetError(
                f"{path} is no data directory: it holds no PG_VERSION and no global",
                _NAME_IT,
            )
    who = user_name(facts.st_uid)
    if os.geteuid() not in (0, facts.st_uid):
        raise TargetError(
            f"{path} belongs to user {who}, and this is user {user_name(os.geteuid())}",
            f"Run the guard as {who}, or as root.",
        )
    return DataDirectory(path, OsUser(who, facts.st_uid, facts.st_gid))


def inode_in(data: Folder) -> int:
    """The number of the folder global, by which data are known from a copy of them."""
    with data.into("global") as folder:
        return folder.facts.st_ino


def claim(data: Folder, patience_s: float = 0.0) -> bool:
    """Be the only one that writes data or opens their interlock, until the folder is closed.

    Nothing is made in it. A file system that has no locks lets everybody.

    Args:
        data: The data directory.
        patience_s: How long another one is waited for.

    Returns:
        False: another one does.
    """
    try:
        return try_lock(data.handle, patience_s)
    except OSError:
        return True
