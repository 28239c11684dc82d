"""The folder that probes write in: below the path asked for, ours alone, and always removed.

It is locked while it is used, and nobody else probes below the same path then: each would measure
the other. One that can be locked was left by a probe that was killed, and goes when the next one
comes.
"""

from __future__ import annotations

import errno
import mmap
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pgdyno.access import stranger_on
from pgdyno.folders import scratch
from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.system_errors import reason
from pgdyno.model.units import bytes_text

_PREFIX = ".pgdyno-storage-"
_KEPT_FREE = 0.05  # of what is free: a server may write to the same disk meanwhile


@contextmanager
def own_folder(path: Path) -> Iterator[Path]:
    """A fresh folder below `path`, removed in any case.

    Raises:
        PlanError: The path is not a folder, or may not be written to; or, as root, somebody else
            could put another folder in its place; or another pgdyno probes there.
    """
    _require_ours(path)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(scratch(path, _PREFIX, sole=True))
        except TargetError as error:
            fact = f"{path}: no folder can be made in it: {error.fact}"
            raise PlanError(fact, error.hint) from error
        yield folder.path


def require_room(paths: Sequence[Path], each_bytes: int) -> Mapping[Path, int]:
    """Refuse what does not fit: all files are there at once.

    Args:
        paths: Existing folders.
        each_bytes: What is written on each of them.

    Returns:
        Free bytes of each.

    Raises:
        PlanError: A file system has less room than its paths need; a twentieth of it stays free. Or
            a path is not a folder, or nothing may be written to it, or, as root, somebody else
            could change it, or two of them are one folder.
    """
    free: dict[Path, int] = {}
    seen: dict[tuple[int, int], Path] = {}
    by_device: dict[int, list[Path]] = {}
    for path in paths:
        try:
            status, free[path] = path.stat(), shutil.disk_usage(path).free
        except OSError as error:
            hint = "Name folders that exist."
            if path.name.isdecimal():
                hint += " Commas separate the values of an option: --depths 1,16."
            elif "," in str(path):
                hint = "Name folders that exist, with spaces between them: /a /b."
            raise PlanError(f"{path}: {reason(error)}", hint) from error
        _require_usable(path, seen.setdefault((status.st_dev, status.st_ino), path))
        by_device.setdefault(status.st_dev, []).append(path)
    for same in by_device.values():
        need = each_bytes * len(same)
        if need > free[same[0]] * (1 - _KEPT_FREE):
            raise PlanError(
                f"{same[0]} has {bytes_text(free[same[0]])} free, of which {_KEPT_FREE:.0%} stay"
                f" free, and the probe needs {bytes_text(need)}",
                "Make room, or name a smaller --size, of 64 MiB at least.",
            )
    return free


def _require_usable(path: Path, first: Path) -> None:
    """Refuse a second name of a folder, and what probes cannot be made in.

    Args:
        path: As it was named.
        first: The first that led to the same folder, or itself.
    """
    if first is not path:
        raise PlanError(f"{first} and {path} are one folder", "Each is measured once.")
    _require_ours(path)
    if not os.access(path, os.W_OK | os.X_OK):
        raise PlanError(
            f"{path}: nothing can be written in it",
            "It is mounted read-only, or its rights do not allow it. Name a folder of yours.",
        )


def _require_ours(path: Path) -> None:
    """Refuse what is no folder, and as root one that somebody else could swap."""
    if not path.is_dir():
        raise PlanError(f"{path} is not a folder", "Name folders on the storage to be measured.")
    if os.geteuid() == 0 and (where := stranger_on(path)):
        raise PlanError(
            f"{path} is measured by root, and others than root can change {where}",
            "As root, name a folder that only root can change, or measure as the other user.",
        )


def accepts_direct(folder: Path) -> bool:
    """Whether the file system takes writes that bypass the page cache.

    Raises:
        TargetError: It takes no writes at all.
    """
    file = folder / "direct"
    try:
        handle = os.open(file, os.O_CREAT | os.O_RDWR | os.O_DIRECT, 0o600)
        try:
            with mmap.mmap(-1, mmap.PAGESIZE) as page:  # direct writes want aligned memory
                os.pwrite(handle, page, 0)
        finally:
            os.close(handle)
    except OSError as error:
        if error.errno == errno.EINVAL:
            return False
        raise TargetError(f"cannot write to {folder}: {reason(error)}") from error
    finally:
        file.unlink(missing_ok=True)
    return True
