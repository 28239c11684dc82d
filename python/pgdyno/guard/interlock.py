"""The interlock: a line in the server's configuration that keeps it from starting when it must not.

The line includes a file in memory. Should the machine lose power, the file is gone, and no server
starts until it is there again; PostgreSQL names it in its message, and its name says what to do.
Where the kernel did not stop, or the server was shut down before, nothing can be torn: then `admit`
puts the file back. Whoever repaired the data says so by `admit_repaired`.
"""

from __future__ import annotations

import os
import re
import stat
from dataclasses import replace
from pathlib import Path

from pgdyno.folders import Folder, Owner, owner_of
from pgdyno.guard.boot import boot_id
from pgdyno.guard.control import read_control
from pgdyno.guard.data_directory import DataDirectory
from pgdyno.guard.include_file import read_pages, write_pages
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.guard import Armed, Lock
from pgdyno.model.record_json import from_json, to_json

STATE = "pgdyno-guard.json"
"""What is kept in the data directory of a server that is armed."""
VERSION = 1
_STATE_MODE = 0o600
_MARK = "# pgdyno guard"
_LINES = """\
{mark}: the last line, so that nothing below decides full_page_writes. Full pages may be off: after
{mark}: a power cut this server does not start before `pgdyno guard repair` has mended its pages.
include '{include}' {mark}
"""
_LINE = re.compile(rf"^include '(?P<include>[^']+)' {_MARK}$", re.MULTILINE)
_OURS = re.compile(rf"^(?:{_MARK}: .*|include '[^']+' {_MARK})\n?", re.MULTILINE)
_PATRONI = "overwritten by Patroni"
_PATRONI_BASE = "postgresql.base.conf"


# -- the state ---------------------------------------------------------------------------------


def read_armed(directory: DataDirectory) -> Armed | None:
    """What is kept of an armed server; None: it is not.

    Raises:
        TargetError: The file is a link, somebody else's, or of another version.
    """
    with directory.opened() as data:
        if not data.has(STATE):
            return None
        text = data.read(STATE, directory.user.uid)
    try:
        armed = from_json(Armed, text)
    except (ValueError, PlanError) as error:
        raise TargetError(
            f"{directory.path / STATE} is not understood: {str(error).splitlines()[0]}",
            "Another version of pgdyno wrote it, or somebody else.",
        ) from error
    if armed.version != VERSION:
        raise TargetError(
            f"{directory.path / STATE} is of version {armed.version}, known is {VERSION}"
        )
    return armed


def write_armed(directory: DataDirectory, armed: Armed) -> None:
    """Keep it; it is on the disk when this returns."""
    with directory.opened() as data:
        data.write(STATE, to_json(armed), _STATE_MODE, owner_of(directory.user))
        data.sync()


def forget_armed(directory: DataDirectory) -> None:
    """Keep nothing any more."""
    with directory.opened() as data:
        data.remove(STATE)
        data.sync()


def is_copy(directory: DataDirectory, armed: Armed) -> bool:
    """Whether these data are a copy, whose state came with it from where it was armed."""
    return os.path.realpath(directory.path) != armed.data


# -- the line ----------------------------------------------------------------------------------


def configuration_of(config_file: Path) -> Path:
    """The file that the line belongs into: what Patroni writes anew includes one that it keeps."""
    with Folder.hold(config_file.parent) as folder:
        if folder.has(_PATRONI_BASE) and _PATRONI in _text(folder, config_file.name):
            return config_file.parent / _PATRONI_BASE
    return config_file


def included(config_file: Path) -> Path | None:
    """The file that our line in a configuration names; None: there is no line of ours.

    Raises:
        TargetError: The configuration cannot be read.
    """
    with Folder.hold(config_file.parent) as folder:
        found = _LINE.search(_text(folder, config_file.name))
    return Path(found["include"]) if found else None


def write_line(config_file: Path, include: Path) -> None:
    """Put our line at the end of a configuration, in the place of one that is there.

    Raises:
        TargetError: The configuration is a link, or cannot be written.
    """
    with Folder.hold(config_file.parent) as folder:
        text = _OURS.sub("", _text(folder, config_file.name))
        if text and not text.endswith("\n"):
            text += "\n"
        _replace(folder, config_file.name, text + _LINES.format(mark=_MARK, include=include))


def remove_line(config_file: Path) -> None:
    """Take our line out of a configuration; all else stays as it is.

    Raises:
        TargetError: The configuration is a link, or cannot be written.
    """
    with Folder.hold(config_file.parent) as folder:
        text = _text(folder, config_file.name)
        if (without := _OURS.sub("", text)) != text:
            _replace(folder, config_file.name, without)


def _text(folder: Folder, name: str) -> str:
    with os.fdopen(folder.open_given(name), "rb") as file:
        # As PostgreSQL reads it: bytes, whose comments may be in any encoding.
        return file.read().decode("utf-8", "surrogateescape")


def _replace(folder: Folder, name: str, text: str) -> None:
    facts = os.lstat(name, dir_fd=folder.handle)
    folder.write(name, text, stat.S_IMODE(facts.st_mode), Owner(facts.st_uid, facts.st_gid))
    folder.sync()


# -- the lock ----------------------------------------------------------------------------------


def judge(directory: DataDirectory, armed: Armed, bindir: Path | None = None) -> Lock:
    """Whether a server on these data may start, and why.

    Args:
        directory: The data directory.
        armed: What is kept of it.
        bindir: See `read_control`.

    Raises:
        TargetError: pg_control cannot be read.
    """
    config_file = (
        directory.path / "postgresql.conf" if is_copy(directory, armed) else armed.config_file
    )
    if Path(config_file).is_file() and included(Path(config_file)) is None:
        return Lock.none
    if read_pages(directory, Path(armed.include)) is not None:
        return Lock.open
    if armed.boot_id == boot_id():
        return Lock.same_boot
    return Lock.clean if read_control(directory, bindir).is_clean else Lock.repair


def admit(directory: DataDirectory, armed: Armed, bindir: Path | None = None) -> Lock:
    """Open the interlock where nothing can be torn, full pages on; tells what was found before.

    Raises:
        TargetError: As `judge`; or the file cannot be written.
    """
    found = judge(directory, armed, bindir)
    if found in (Lock.same_boot, Lock.clean):
        admit_repaired(directory, armed)
    return found


def admit_repaired(directory: DataDirectory, armed: Armed) -> None:
    """Open the interlock, full pages on: nothing is torn, and all of that is on the disk.

    Raises:
        TargetError: A file cannot be written.
    """
    write_armed(directory, replace(armed, boot_id=boot_id()))
    write_pages(directory, Path(armed.include), "on", make=True)
