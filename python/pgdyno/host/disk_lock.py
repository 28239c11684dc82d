"""Disks that are taken while something is measured on them: two at once would measure each other.

A disk is locked where the kernel shows it, in a folder below /sys that everybody may lock and
nobody can write in: so root and users meet there, whatever folder each of them names, no file is
left, and a lock ends with the process that has it. Who holds one is told by the kernel, too.
In a folder that the environment names instead, a folder for each disk is made and left: a lock
needs something to lie on.

What cannot be seen: other hosts on a disk that they share, and containers with a /sys of their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from pgdyno.access import user_name
from pgdyno.folders import MARK
from pgdyno.locks import try_lock
from pgdyno.model.errors import TargetError
from pgdyno.model.system_errors import reason
from pgdyno.model.text import one_line, shell_line
from pgdyno.model.wording import listed
from pgdyno.target.device_claims import device_claims
from pgdyno.target.file_systems import existing

VARIABLE = "PGDYNO_DISK_LOCKS"
"""Names a folder of locks in place of the kernel's: who names another one is not seen."""
_DISKS = Path("/sys/class/block")
_PROC = Path("/proc")
_WORDS_MAX = 100  # of a command, in letters
_HINT = (
    "Wait until it has ended, or stop it: two that use one disk at once measure each other."
    " `kill -INT` asks it to stop."
)
_UNFIT_HINT = (
    f"Name a folder that all who measure can write in, or unset {VARIABLE}: then disks are locked"
    " where the kernel shows them, which needs no rights."
)


@contextmanager
def disks_taken(
    folders: Iterable[Path], *, alone: bool, environ: Mapping[str, str] = os.environ
) -> Iterator[None]:
    """Meanwhile, no other pgdyno measures on the disks below these folders.

    Args:
        folders: Those that are written to; of one that is not there yet, the one above it counts.
        alone: Nobody may use the disks, since it is they that are measured. Else those who do not
            measure disks may be there, too.
        environ: May name another folder of locks.

    Raises:
        TargetError: Another pgdyno has one of them: which, and where it works. Or a folder of locks
            that is named will not do: what cannot be locked there would be measured by two.
    """
    folder_on = _disks_below(folders)
    named = _named(environ)
    with ExitStack() as held:
        for disk in sorted(folder_on):  # all take them in one order, so that one of two gets both
            try:
                handle = _opened(named, disk)
            except OSError as error:
                if named is not None:
                    raise _unfit(named, error) from error
                continue  # not shown here: who else uses it cannot be known
            held.callback(os.close, handle)
            if not _takes(handle, alone):
                raise _taken(disk, folder_on[disk], _holders(os.fstat(handle), alone=alone))
        yield


def require_free(
    folders: Iterable[Path], *, alone: bool, environ: Mapping[str, str] = os.environ
) -> None:
    """Refuse as `disks_taken` would now, and take nothing: a look must not keep others away.

    A holder that the kernel does not list, as one of another container, is seen by `disks_taken`
    alone.

    Args:
        folders: See `disks_taken`, as what follows.
        alone: Nobody may use the disks.
        environ: May name another folder of locks.

    Raises:
        TargetError: Another pgdyno has one of them, or a folder of locks that is named is none.
    """
    named = _named(environ)
    for disk, folder in sorted(_disks_below(folders).items()):
        with suppress(OSError):  # not shown here; or in a named folder: nobody has locked it yet
            if there := _holders(((named or _DISKS) / disk).stat(), alone=alone):
                raise _taken(disk, folder, there)


def _disks_below(folders: Iterable[Path]) -> dict[str, Path]:
    """Each disk with the first of the folders on it."""
    found: dict[str, Path] = {}
    for folder in folders:
        for disk in device_claims(existing(folder)).disks:
            found.setdefault(disk, folder)
    return found


def _named(environ: Mapping[str, str]) -> Path | None:
    """The folder of locks that the environment names; None: the kernel's folder of disks.

    Raises:
        TargetError: It is not a folder.
    """
    if not (name := environ.get(VARIABLE)):
        return None
    folder = Path(name)
    if not folder.is_dir():
        raise TargetError(f"{one_line(name)}, named by {VARIABLE}, is not a folder", _UNFIT_HINT)
    return folder


def _opened(named: Path | None, disk: str) -> int:
    """What is locked of a disk; in a named folder it is made, for whoever comes there first."""
    if named is not None:
        with suppress(FileExistsError):
            (named / disk).mkdir()
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    return os.open((named or _DISKS) / disk, flags if named is None else flags | os.O_NOFOLLOW)


def _unfit(named: Path, error: OSError) -> TargetError:
    return TargetError(
        f"disks cannot be locked in {one_line(str(named))}, named by {VARIABLE}: {reason(error)}",
        _UNFIT_HINT,
    )


def _takes(handle: int, alone: bool) -> bool:
    try:
        return try_lock(handle, shared=not alone)
    except OSError:  # a system that does not lock there
        return True


def _taken(disk: str, folder: Path, holders: Iterable[int]) -> TargetError:
    who = [_described(pid, disk) for pid in holders]
    holder = listed(who) if who else "a process that is not shown here, perhaps of a container"
    return TargetError(
        f"{folder} lies on disk {disk}, on which another pgdyno measures: {holder}", _HINT
    )


def _holders(facts: os.stat_result, *, alone: bool) -> list[int]:
    """Processes whose lock on a disk keeps away who wants it alone, or beside others."""
    device = f"{os.major(facts.st_dev):02x}:{os.minor(facts.st_dev):02x}:{facts.st_ino}"
    found = []
    with suppress(OSError):
        for line in (_PROC / "locks").read_text().splitlines():
            # "1: FLOCK ADVISORY WRITE 4728 00:16:1 0 EOF"; an arrow before the kind: it waits.
            words = line.split()
            if len(words) <= 5 or words[1] != "FLOCK" or words[5] != device:
                continue
            if alone or words[3] == "WRITE":
                found.append(int(words[4]))
    return sorted({pid for pid in found if pid > 0})


def _described(pid: int, disk: str) -> str:
    """A process, whose it is, its command, and folders of ours on a disk that it works in."""
    process = _PROC / str(pid)
    try:
        user = user_name(process.stat().st_uid)
        words = (process / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # gone meanwhile
        return f"process {pid}"
    command = one_line(shell_line(_from_its_name(words))).strip()
    short = command if len(command) <= _WORDS_MAX else f"{command[:_WORDS_MAX]}…"
    places = _places(process, disk)
    where = f", in {listed(places)}" if places else ""
    return f"process {pid} of user {user} (`{short}`){where}"


def _from_its_name(words: list[str]) -> list[str]:
    """A command without the Python that runs it and its folder, where it is pgdyno's."""
    names = [Path(word).name for word in words]
    ours = "pgdyno" in names
    return ["pgdyno", *words[names.index("pgdyno") + 1 : -1]] if ours else words[:-1]


def _places(process: Path, disk: str) -> list[str]:
    """Marked folders on a disk that a process holds open; none where that is not shown to us."""
    found = set()
    with suppress(OSError):
        for link in (process / "fd").iterdir():
            with suppress(OSError, RuntimeError):
                path = Path(os.readlink(link))
                if (path / MARK).is_file() and disk in device_claims(path).disks:
                    found.add(path)
    outer = [one for one in found if not any(above in found for above in one.parents)]
    return [one_line(str(one)) for one in sorted(outer)]
