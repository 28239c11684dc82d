"""What the kernel says of the storage below a folder: its cache, its flushes, its atomic writes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.floor import DeviceClaims
from pgdyno.target.file_systems import file_system
from pgdyno.target.storage_durability import ROOT

_DEPTH = 8  # of devices on devices


def device_claims(path: Path, root: Path = ROOT) -> DeviceClaims:
    """The file system of a folder, and the disk below it as far as there is one.

    Args:
        path: An existing folder.
        root: Of the file tree, for tests.
    """
    found = file_system(path)
    block = _block_device(path.stat().st_dev, found["device"], root)
    if block is None:
        return DeviceClaims(found["type"], found["mount"], found["options"], found["device"])
    queue = block / "queue"
    return DeviceClaims(
        file_system=found["type"],
        mount=found["mount"],
        options=found["options"],
        device=found["device"],
        block_device=block.name,
        model=_text(block / "device/model"),
        rotational=_flag(queue / "rotational"),
        write_cache=_text(queue / "write_cache"),
        fua=_flag(queue / "fua"),
        atomic_write_bytes=_number(queue / "atomic_write_unit_max_bytes"),
        logical_block_bytes=_number(queue / "logical_block_size"),
        physical_block_bytes=_number(queue / "physical_block_size"),
        scheduler=_chosen(queue / "scheduler"),
        backing_file=_text(block / "loop/backing_file"),
        backed_by_memory=_is_in_memory(block, root),
        disks=tuple(dict.fromkeys(_disks(block, root))),
        cached_file=_flag(block / "loop/dio") is False,
    )


def _block_device(number: int, device: str, root: Path) -> Path | None:
    """The whole disk in /sys: a partition has its queue with its parent.

    Some file systems (btrfs, overlays) have a number that no device has; then the name tells.
    """
    by_number = root / "sys/dev/block" / f"{os.major(number)}:{os.minor(number)}"
    by_name = root / "sys/class/block" / os.path.basename(os.path.realpath(device))
    for found in (by_number, by_name):
        if (whole := _whole(found.resolve())) is not None:
            return whole
    return None


def _is_in_memory(block: Path, root: Path) -> bool:
    """Whether the file of a loop device is kept in memory, or that of one below it."""
    below: Path | None = block
    for _ in range(_DEPTH):
        backing = _text(below / "loop/backing_file") if below else None
        found = _behind(backing, root) if backing else None
        if found is None:
            return False
        kind, below = found
        if kind in IN_MEMORY:
            return True
    return False


def _behind(backing: str, root: Path) -> tuple[str, Path | None] | None:
    """The file system of a loop device's file, and the device below that; None: out of sight."""
    try:
        file = Path(backing)
        found = file_system(file)
        return found["type"], _block_device(file.stat().st_dev, found["device"], root)
    except OSError:
        return None  # deleted, or of another mount namespace


def _disks(block: Path, root: Path, depth: int = 0) -> Iterator[str]:
    """The whole disks below a device: of an array or a volume its parts', of a loop its file's."""
    below: list[Path | None] = []
    if backing := _text(block / "loop/backing_file"):
        found = _behind(backing, root)
        if found is None:
            return
        below = [found[1]]
    else:
        parts = block / "slaves"
        below = [_whole(one.resolve()) for one in sorted(parts.iterdir())] if parts.is_dir() else []
    if not below:
        yield block.name
    for one in below if depth < _DEPTH else ():
        if one is not None:
            yield from _disks(one, root, depth + 1)


def _whole(block: Path) -> Path | None:
    """A device, or the disk that it is a partition of."""
    return next((one for one in (block, block.parent) if (one / "queue").is_dir()), None)


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() or None
    except OSError:
        return None


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.isdigit() else None


def _flag(path: Path) -> bool | None:
    number = _number(path)
    return None if number is None else number != 0


def _chosen(path: Path) -> str | None:
    text = _text(path)
    if text and "[" in text:
        return text.partition("[")[2].partition("]")[0]
    return text
