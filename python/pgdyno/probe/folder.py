"""The folder that probes write in: below the path asked for, ours alone, and always removed.

It is locked while it is used. One that can be locked was left by a probe that was killed, and goes
when the next one comes.
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pgdyno.model.errors import PlanError, TargetError
from pgdyno.model.units import bytes_text

_PREFIX = ".pgdyno-storage-"
_LOCK = "in-use"
_PATIENCE_S = 2.0  # making a folder takes no time
_KEPT_FREE = 0.05  # a server may write to the same disk meanwhile


@contextmanager
def own_folder(path: Path) -> Iterator[Path]:
    """A fresh folder below `path`, removed in any case.

    Raises:
        PlanError: The path is no folder, or may not be written to.
    """
    if not path.is_dir():
        raise PlanError(f"{path} is no folder", "Name folders on the storage to be measured.")
    try:
        with _alone(path) as alone:
            _remove_leftovers(path, alone)
            folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=path))
            lock = _locked(folder)
    except OSError as error:
        raise PlanError(f"{path}: no folder can be made in it: {error.strerror}") from error
    try:
        yield folder
    finally:
        _remove(folder)
        os.close(lock)


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Meanwhile, no other pgdyno makes a folder here; tells whether that could be had."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        deadline = time.monotonic() + _PATIENCE_S
        while not (alone := _takes(handle)) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield alone
    finally:
        os.close(handle)


def _takes(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # somebody has it, or it is a file system without locks
        return False
    return True


def _locked(folder: Path) -> int:
    try:
        lock = os.open(folder / _LOCK, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return lock


def _remove_leftovers(path: Path, alone: bool) -> None:
    for left in path.glob(f"{_PREFIX}*"):
        try:
            if left.lstat().st_uid != os.geteuid() or left.is_symlink():
                continue
            lock = os.open(left / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            if alone:  # an empty one was left before it had its lock; others are not ours
                with suppress(OSError):
                    left.rmdir()
            continue
        try:
            if _takes(lock):
                _remove(left)
        finally:
            os.close(lock)


def _remove(folder: Path) -> None:
    """The lock goes last: a kill in between leaves what the next one knows and removes."""
    for one in folder.iterdir():
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one)
        elif one.name != _LOCK:
            one.unlink()
    shutil.rmtree(folder)


def require_room(paths: Sequence[Path], each_bytes: int) -> Mapping[Path, int]:
    """Refuse what does not fit: all files are there at once.

    Args:
        paths: Existing folders.
        each_bytes: What is written on each of them.

    Returns:
        Free bytes of each.

    Raises:
        PlanError: A file system has less room than its paths need; a twentieth is left free.
    """
    free: dict[Path, int] = {}
    by_device: dict[int, list[Path]] = {}
    for path in paths:
        try:
            free[path] = shutil.disk_usage(path).free
            by_device.setdefault(path.stat().st_dev, []).append(path)
        except OSError as error:
            raise PlanError(f"{path}: {error.strerror}", "Name folders that exist.") from error
    for same in by_device.values():
        need = each_bytes * len(same)
        if need > free[same[0]] * (1 - _KEPT_FREE):
            raise PlanError(
                f"{same[0]} has {bytes_text(free[same[0]])} free, the probe needs"
                f" {bytes_text(need)} and leaves {_KEPT_FREE:.0%} free",
                "Make room, or name a smaller --size.",
            )
    return free


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
        raise TargetError(f"write to {folder}: {error.strerror}") from error
    finally:
        file.unlink(missing_ok=True)
    return True
