"""The interlock: a line in the server's configuration that keeps it from starting when it must not.

The line includes a file in memory. Should the machine lose power, the file is gone, and no server
starts until it is there again; PostgreSQL names it in its message, and its name says what to do.
Where the kernel did not stop, or the server was shut down before (as a primary: what a standby says
of its end is no promise, see `control`), nothing can be torn: then `admit` puts the file back.
Whoever repaired the data says so by `admit_repaired`.

Which file that is says a state that the server's user can write, and which configuration the server
itself. As root both are believed as far as that user's own rights go.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pgdyno.access import is_closed, user_name
from pgdyno.folders import Folder, Owner, owner_of
from pgdyno.guard.boot import boot_id
from pgdyno.guard.control import read_control
from pgdyno.guard.data_directory import DataDirectory, claim, inode_in
from pgdyno.guard.include_file import include_path, read_pages, run_folder_of, write_pages
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.guard import Armed, Lock
from pgdyno.model.record_json import from_json, to_json
from pgdyno.model.text import path_typed
from pgdyno.model.wording import plural
from pgdyno.target.storage_durability import mount_of, read_mounts

STATE = "pgdyno-guard.json"
"""What is kept in the data directory of a server that is armed."""
VERSION = 1
_STATE_MODE = 0o600
_CONFIGURATION_BYTES_MAX = 4 << 20
_RIGHTS = 0o777  # of a mode: who runs a file as its owner is none of it
_MARK = "# pgdyno guard"
_LINES = """\
{mark}: the last line, so that nothing below decides full_page_writes. Full pages may be off: after
{mark}: a power cut this server does not start before `pgdyno guard repair` has mended its pages.
include '{include}' {mark}
"""
_LINE = re.compile(rf"^include '(?P<include>[^']+)' {_MARK}$", re.MULTILINE)
_OURS = re.compile(rf"^(?:{_MARK}: .*|include '[^']+' {_MARK})\n?", re.MULTILINE)
_INCLUDES = re.compile(
    r"^[ \t]*include[ \t]*=?[ \t]*'((?:[^'\n]|'')+)'", re.MULTILINE | re.IGNORECASE
)
_INCLUDED_MAX = 10  # files; PostgreSQL follows as many, one in the other
_PATRONI = "overwritten by Patroni"
_PATRONI_LINES = 2  # at the beginning of what it writes
_USUAL = "postgresql.conf"


# -- the state ---------------------------------------------------------------------------------


def read_armed(directory: DataDirectory) -> Armed | None:
    """What is kept of an armed server; None: it is not.

    Raises:
        TargetError: The file is a link, somebody else's, of another version, or names what no
            guard does.
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
    _require_sound(armed)
    return armed


def _require_sound(armed: Armed) -> None:
    """Refuse a file that no guard would name: it is written, and its folder emptied, as root."""
    name, system = armed.include, armed.system_identifier
    usual = include_path(Path(name).parent.parent, system)
    is_number = system.isascii() and system.isdecimal()
    is_plain = name.startswith("/") and name.isprintable() and "'" not in name
    is_plain &= ".." not in usual.parts
    if not (is_number and is_plain and name == str(usual)):
        raise TargetError(
            f"the interlock's file is {name!r} for system {system!r}, expected a folder in memory,"
            f" the number of the system, and {usual.name}",
            "Somebody else than the guard wrote that.",
        )


def write_armed(directory: DataDirectory, armed: Armed) -> None:
    """Keep it; it is on the disk when this returns.

    Raises:
        TargetError: It names what no guard does, or cannot be written.
    """
    _require_sound(armed)
    with directory.opened() as data:
        data.write(STATE, to_json(armed), _STATE_MODE, owner_of(directory.user))
        data.sync()


def forget_armed(directory: DataDirectory) -> None:
    """Keep nothing any more."""
    with directory.opened() as data:
        data.remove(STATE)
        data.sync()


def is_copy(directory: DataDirectory, armed: Armed) -> bool:
    """Whether these data are a copy, whose state came with it from where it was armed.

    It may lie at the same path, of another machine; what stays with the data, also when their
    volume goes to another machine, is the number of a folder in them.
    """
    return _is_elsewhere(directory, armed) or armed.inode not in (None, inode_of(directory))


def inode_of(directory: DataDirectory) -> int:
    """See `inode_in`."""
    with directory.opened() as data:
        return inode_in(data)


def require_original(directory: DataDirectory, armed: Armed) -> None:
    """Refuse to watch a copy.

    Raises:
        TargetError: It is one.
    """
    if is_copy(directory, armed):
        raise TargetError(
            f"{directory.path} is a copy of {original_of(directory, armed)}, which is the one that"
            " is armed",
            "`pgdyno guard disarm` takes the interlock out of a copy.",
        )


def original_of(directory: DataDirectory, armed: Armed) -> str:
    """What a copy was made of."""
    is_elsewhere = _is_elsewhere(directory, armed)
    return armed.data if is_elsewhere else f"what was armed at {armed.data}"


def _is_elsewhere(directory: DataDirectory, armed: Armed) -> bool:
    return os.path.realpath(directory.path) != armed.data


# -- the line ----------------------------------------------------------------------------------


def configuration_of(config_file: Path) -> Path:
    """The file that the line belongs into: what Patroni writes anew includes one that it keeps.

    That is its `postgresql.base.conf`, under whatever name, or its `custom_conf`.

    Raises:
        TargetError: The configuration cannot be read.
    """
    text = _text_of(config_file)
    if not any(_PATRONI in line for line in text.splitlines()[:_PATRONI_LINES]):
        return config_file
    return next(_included_by(config_file, text), config_file)


def configuration_in(directory: DataDirectory) -> Path:
    """The file in a data directory that has the line, if one there has."""
    usual = directory.path / _USUAL
    found = configuration_of(usual) if usual.is_file() else usual
    return found if found.parent == directory.path else usual


def stray_configuration(directory: DataDirectory, configuration: Path) -> str:
    """What a server reads that is started on the data alone, and has no line; empty: nothing.

    Whoever names no config_file starts it so, though the server was started with another one: a
    person by `pg_ctl -D`, or pg_rewind, by `postgres --single -D`.

    Args:
        directory: The data directory.
        configuration: The file that the line belongs into.
    """
    usual = directory.path / _USUAL
    wanted, ahead, seen = os.path.realpath(configuration), [usual], set[str]()
    while ahead and len(seen) < _INCLUDED_MAX:
        path = os.path.realpath(ahead.pop())
        if path == wanted:
            return ""
        if path not in seen and os.path.exists(path):
            seen.add(path)
            with suppress(TargetError):  # what the guard may not read leads to nothing
                ahead += _included_by(Path(path), _text_of(Path(path)))
    return str(usual) if os.path.exists(usual) else ""


def _included_by(config_file: Path, text: str) -> Iterator[Path]:
    """Files that a configuration includes by name, in their order."""
    for name in _INCLUDES.findall(text):
        yield config_file.parent / name.replace("''", "'").replace("\\\\", "\\")


def included(config_file: Path) -> Path | None:
    """The file that our line in a configuration names; None: there is no line of ours.

    Raises:
        TargetError: The configuration cannot be read.
    """
    found = _LINE.search(_text_of(config_file))
    return Path(found["include"]) if found else None


def write_line(directory: DataDirectory, config_file: Path, include: Path) -> None:
    """Put our line at the end of a configuration, in the place of one that is there.

    Raises:
        TargetError: The configuration is a link, somebody else's, or cannot be written.
    """

    def changed(text: str) -> str:
        before = _OURS.sub("", text)
        if before and not before.endswith("\n"):
            before += "\n"
        return before + _LINES.format(mark=_MARK, include=include)

    _change(directory, config_file, changed)


def remove_line(directory: DataDirectory, config_file: Path) -> None:
    """Take our line out of a configuration; all else stays as it is.

    Raises:
        TargetError: The configuration is a link, somebody else's, or cannot be written.
    """
    _change(directory, config_file, lambda text: _OURS.sub("", text))


def require_changeable(directory: DataDirectory, config_file: Path) -> None:
    """As root, refuse a configuration that the server's user could not change himself.

    Raises:
        TargetError: It is, or cannot be read.
    """
    with Folder.hold(config_file.parent) as folder:
        handle = folder.open_given(config_file.name)
        try:
            _require_theirs(directory, folder, config_file.name, os.fstat(handle))
        finally:
            os.close(handle)


def _text_of(config_file: Path) -> str:
    with Folder.hold(config_file.parent) as folder:
        return _read(folder, config_file.name)[0]


def _read(folder: Folder, name: str) -> tuple[str, os.stat_result]:
    """A configuration, and whose what was read is. Its server named it, and it may be any file."""
    with os.fdopen(folder.open_given(name), "rb") as file:
        data, facts = file.read(_CONFIGURATION_BYTES_MAX + 1), os.fstat(file.fileno())
    if len(data) > _CONFIGURATION_BYTES_MAX:
        raise TargetError(
            f"{folder.path / name} has {facts.st_size} bytes, a configuration has"
            f" {_CONFIGURATION_BYTES_MAX} at most",
            "Is it what `SHOW config_file` says on the primary?",
        )
    # As PostgreSQL reads it: bytes, whose comments may be in any encoding.
    return data.decode("utf-8", "surrogateescape"), facts


def _change(directory: DataDirectory, config_file: Path, changed: Callable[[str], str]) -> None:
    name = config_file.name
    with Folder.hold(config_file.parent) as folder:
        text, facts = _read(folder, name)
        if (new := changed(text)) == text:
            return
        _require_theirs(directory, folder, name, facts)
        owner = Owner(facts.st_uid, facts.st_gid)
        folder.write(name, new, stat.S_IMODE(facts.st_mode) & _RIGHTS, owner)
        folder.sync()


def _require_theirs(
    directory: DataDirectory, folder: Folder, name: str, file: os.stat_result
) -> None:
    """A server can name any file as its configuration; root changes none for it but its user's."""
    user, above = directory.user, folder.facts
    if os.geteuid() != 0:
        return
    is_safe = above.st_uid == user.uid or is_closed(above, sticky_holds=False)
    if file.st_uid == user.uid and file.st_nlink == 1 and is_safe:
        return
    raise TargetError(
        f"{folder.path / name} belongs to user {user_name(file.st_uid)} (in a folder of user"
        f" {user_name(above.st_uid)}, under {plural(file.st_nlink, 'name')}), expected"
        f" {user.name} alone",
        "As root, the guard changes a configuration only where its server's user could.",
    )


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
        configuration_in(directory) if is_copy(directory, armed) else Path(armed.config_file)
    )
    if config_file.is_file() and included(config_file) is None:
        return Lock.none
    if read_pages(directory, Path(armed.include)) is not None:
        return Lock.open
    if armed.boot_id == boot_id():
        return Lock.same_boot
    return Lock.clean if read_control(directory, bindir).is_clean else Lock.repair


def repair_first(data: Path | str) -> str:
    """What to do with a server whose pages may be torn."""
    named = path_typed(data)
    return (
        f"Do not start the server: `pgdyno guard repair {named}` first, or, if its standby was"
        f" promoted meanwhile, `pgdyno guard rejoin {named}`."
    )


def kernel_lived(directory: DataDirectory, armed: Armed) -> bool:
    """Whether the kernel did not stop since nothing could be torn.

    Raises:
        TargetError: See `read_pages`.
    """
    return armed.boot_id == boot_id() or read_pages(directory, Path(armed.include)) is not None


def admit(directory: DataDirectory, bindir: Path | None = None) -> Lock:
    """Open the interlock where nothing can be torn, full pages on; tells what was found before.

    Never while a repair, which may have shut it, claims the data; and by what the state says then,
    not by what it said before.

    Raises:
        TargetError: As `read_armed`, `judge`; or the file cannot be written.
    """
    with directory.opened() as data:
        if not claim(data):
            return Lock.repair
        armed = read_armed(directory)
        if armed is None:
            return Lock.none
        found = judge(directory, armed, bindir)
        if found in (Lock.same_boot, Lock.clean):
            admit_repaired(directory, armed)
    return found


def admit_repaired(directory: DataDirectory, armed: Armed) -> None:
    """Open the interlock, full pages on: nothing is torn, and all of that is on the disk.

    Out of a copy of what lies on this machine it is taken: the file that its line names is that
    one's, whose pages may be torn still.

    Raises:
        TargetError: A file cannot be written.
    """
    if _is_elsewhere(directory, armed) and os.path.exists(Path(armed.data, "PG_VERSION")):
        release_copy(directory)
        return
    require_in_memory(armed)
    write_armed(directory, replace(armed, boot_id=boot_id()))
    write_pages(directory, Path(armed.include), "on", make=True)


def release_copy(directory: DataDirectory) -> None:
    """Take the interlock out of a copy, whose pages are whole.

    Raises:
        TargetError: Its configuration or its state cannot be changed.
    """
    configuration = configuration_in(directory)
    if configuration.is_file():  # it may lie elsewhere, as Debian has it, and was not copied then
        remove_line(directory, configuration)
    forget_armed(directory)


def shut(directory: DataDirectory) -> None:
    """Close the interlock where there is one: pages will be torn, though the kernel lived on.

    The file of a copy is another server's, and stays.

    Raises:
        TargetError: The state or the file cannot be read or written.
    """
    armed = read_armed(directory)
    if armed is None:
        return
    write_armed(directory, replace(armed, boot_id=""))
    if not is_copy(directory, armed):
        with run_folder_of(Path(armed.include), directory.user) as folder:
            if folder is not None:
                folder.remove(Path(armed.include).name)


def require_in_memory(armed: Armed) -> None:
    """Refuse a file that would outlive the kernel, wherever a state says that it lies.

    Raises:
        TargetError: It would.
    """
    include = Path(armed.include)
    if (kind := kind_below(include)) not in IN_MEMORY:
        raise TargetError(
            f"{include} would lie on {kind or 'nothing known'}, expected a file system in memory"
            f" ({', '.join(IN_MEMORY)})",
            "A power cut has to take it away, so that the server does not start.",
        )


def kind_below(path: Path) -> str:
    """The kernel's word for the file system that a file would lie on; empty: it has none."""
    mounts = read_mounts(Path("/proc/self/mountinfo").read_text())
    mount = mount_of(os.path.realpath(existing_above(path)), mounts)
    return mount.kind if mount else ""


def existing_above(path: Path) -> Path:
    """The nearest folder above a path that is there."""
    return next(one for one in path.parents if one.is_dir())
