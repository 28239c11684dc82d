"""Which conninfos of a guard's state this user may follow.

The state lies in the data directory, where the server's user can write anything. A conninfo in it
would lead root to a server of his, with a password of root's ~/.pgpass or services, and has libpq
read and write files that it names. So root follows what root named alone: on the command line, or
when root armed the pair, which is kept where nobody else can write, and has to be what the state
says. Everybody else follows the state of his own server.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pgdyno.folders import Folder
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.guard.state import folder_at, state_path
from pgdyno.model.errors import TargetError
from pgdyno.model.guard import Armed
from pgdyno.model.record_json import from_json, to_json

_FOLDER = "named"
_VERSION = 1
_NAME_DIGITS = 32

Which: TypeAlias = Literal["primary", "standby"]


@dataclass(frozen=True, slots=True)
class Named:
    """What root armed a pair with."""

    version: int  # of this shape
    data: str  # the primary's directory, without links
    primary: str  # conninfo without passwords; empty: by postmaster.pid
    standby: str  # conninfo without passwords

    def of(self, which: Which) -> str:
        """The conninfo of one of the two."""
        return self.primary if which == "primary" else self.standby


def keep(directory: DataDirectory, primary: str, standby: str) -> None:
    """Keep what root arms another user's server with; others follow their own state.

    Args:
        directory: The primary's.
        primary: Conninfo without passwords; empty: by postmaster.pid.
        standby: Conninfo without passwords.

    Raises:
        TargetError: It cannot be written, or others than root could change what is there.
    """
    if not directory.user.is_other:
        return
    named = Named(_VERSION, os.path.realpath(directory.path), primary, standby)
    with folder_at(state_path() / _FOLDER) as folder:
        folder.write(_name_of(directory), to_json(named), 0o600)
        folder.sync()


def forget(directory: DataDirectory) -> None:
    """Keep nothing any more."""
    path = state_path() / _FOLDER
    if directory.user.is_other and path.is_dir():
        with Folder.hold(path) as folder:
            folder.require_closed()
            folder.remove(_name_of(directory))


def followed(
    directory: DataDirectory, armed: Armed, which: Which, option: str | None = None
) -> str:
    """The conninfo that the state has, if this user may follow it; empty: it has none.

    Args:
        directory: The primary's.
        armed: Its state.
        which: Of the two servers.
        option: By which a person names it; None: `--primary` or `--standby`.

    Raises:
        TargetError: Root did not name it.
    """
    conninfo = armed.primary if which == "primary" else armed.standby
    if not conninfo or not directory.user.is_other:
        return conninfo
    named = _read(directory)
    if named is not None and named.of(which) == conninfo:
        return conninfo
    theirs = "none" if named is None else repr(named.of(which))
    raise TargetError(
        f"{which} of the state in {directory.path} is {conninfo!r}, root armed it with {theirs}",
        f"User {directory.user.name} can write that state, so root does not follow it: name the"
        f" {which} ({option or f'--{which}'} CONNINFO), or run this as {directory.user.name}.",
    )


def _read(directory: DataDirectory) -> Named | None:
    path, name = state_path() / _FOLDER, _name_of(directory)
    if not path.is_dir():
        return None
    with Folder.hold(path) as folder:
        folder.require_closed()
        if not folder.has(name):
            return None
        text = folder.read(name)
    try:
        named = from_json(Named, text)
    except ValueError as error:
        raise TargetError(
            f"{path / name} is not understood: {str(error).splitlines()[0]}",
            "Remove it, and arm the pair again.",
        ) from error
    is_theirs = named.data == os.path.realpath(directory.path)
    return named if named.version == _VERSION and is_theirs else None


def _name_of(directory: DataDirectory) -> str:
    """Of the file; a path may be longer than a name, and has slashes."""
    path = os.fsencode(os.path.realpath(directory.path))
    return f"{hashlib.sha256(path).hexdigest()[:_NAME_DIGITS]}.json"
