"""What the storage below a folder gives up of durability, as the kernel tells: file system, device.

What a device does when its power goes is told by nobody; where the kernel's own word is missing,
the answer is that it is not known, never that nothing is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.catalog.knobs import Fall
from pgdyno.catalog.machine import machine_knobs
from pgdyno.model.durability import Durability, Loss
from pgdyno.model.file_system import IN_MEMORY
from pgdyno.model.mount_words import mount_word
from pgdyno.model.settings import Rung

_MEMORY_DISKS = ("zram", "ram")
_ON_DEVICES = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "jfs", "bcachefs", "nilfs2")
_MEMORY_LOSES = "a crash of the machine loses the cluster: it is in memory"
_CACHE = "queue/write_cache"
ROOT = Path("/")

Found = Loss | str  # a loss, or what is not known


@dataclass(frozen=True, slots=True)
class Mount:
    """A line of /proc/self/mountinfo."""

    point: str
    kind: str
    source: str
    number: str  # of the device, "major:minor"
    options: dict[str, str]  # of the mount and of its file system; flags are "on"


def storage_losses(path: Path, what: str, root: Path = ROOT) -> Durability:
    """What is found below a folder.

    Args:
        path: An existing folder, without links in it.
        what: What lies there, e.g. `data folder`.
        root: Of the file tree, for tests.
    """
    found = list(_below(str(path), f"{what} {path}", root, frozenset()))
    losses = [one for one in found if isinstance(one, Loss)]
    return Durability(tuple(losses), tuple(one for one in found if isinstance(one, str)))


def read_mounts(text: str) -> list[Mount]:
    """The lines of mountinfo, see proc(5)."""
    found = []
    for line in text.splitlines():
        head, _, tail = line.partition(" - ")
        _, _, number, _, point, options, *_ = head.split(" ")
        kind, source, further = [*tail.split(" "), ""][:3]
        words = [word.partition("=") for word in (*options.split(","), *further.split(",")) if word]
        named = {name: value if sign else "on" for name, sign, value in words}
        found.append(Mount(mount_word(point), kind, mount_word(source), number, named))
    return found


def mount_of(path: str, mounts: list[Mount]) -> Mount | None:
    """The mount that a path lies on: the longest, and of equals the last."""
    best = None
    for one in mounts:
        inside = path == one.point or path.startswith(one.point.rstrip("/") + "/")
        if inside and (best is None or len(one.point) >= len(best.point)):
            best = one
    return best


def _below(path: str, what: str, root: Path, seen: frozenset[str]) -> Iterator[Found]:
    table = _text(root / "proc/self/mountinfo") or ""
    mount = mount_of(path, read_mounts(table))
    if mount is None:
        yield f"what {what} lies on"
        return
    where = f"mount {mount.point}"
    if mount.kind in IN_MEMORY:
        yield Loss(Rung.D6, f"{what} in memory ({mount.kind})", _MEMORY_LOSES, "file system", where)
        return
    for option, fall in _falls(mount):
        yield Loss(
            fall.rung, f"{what} on {mount.kind} with {option}", fall.loses, "file system", where
        )
    if mount.kind == "overlay":
        upper = mount.options.get("upperdir", "")
        if upper in seen or not (root / upper.lstrip("/")).is_dir() or not upper:
            yield f"what lies below the overlay of {what}"
            return
        yield from _below(upper, what, root, seen | {upper})
    elif mount.kind in _ON_DEVICES:
        yield from _on_device(mount, what, root, seen)
    else:
        yield f"what {mount.kind} does when {what} is flushed"


def _falls(mount: Mount) -> Iterator[tuple[str, Fall]]:
    """Options of the mount that stand on a lower rung, by the catalogue."""
    for name, knob in machine_knobs().items():
        if knob.layer != "mount" or not knob.fall or not _is_of(mount.kind, knob.fs):
            continue
        option = knob.option or name
        value = mount.options.get(option)
        for fall in knob.fall:
            if value is not None and fall.holds(value):
                yield option if value == "on" else f"{option}={value}", fall


def _is_of(kind: str, named: str | None) -> bool:
    """Whether options of one kind of file system hold for another: ext3 is mounted as ext4."""
    return named is None or kind == named or (kind, named) in {("ext3", "ext4"), ("nfs4", "nfs")}


def _on_device(mount: Mount, what: str, root: Path, seen: frozenset[str]) -> Iterator[Found]:
    by_number = root / "sys/dev/block" / mount.number
    by_name = root / "sys/class/block" / os.path.basename(os.path.realpath(mount.source))
    disk = next((one for link in (by_number, by_name) if (one := _disk(link))), None)
    if disk is None:
        yield f"the device of {what}"
        return
    yield from _of_disk(disk, what, root, seen)


def _disk(link: Path) -> Path | None:
    """The whole disk in /sys: a partition has its queue with its parent."""
    real = link.resolve()
    return next((one for one in (real, real.parent) if (one / "queue").is_dir()), None)


def _of_disk(disk: Path, what: str, root: Path, seen: frozenset[str]) -> Iterator[Found]:
    if disk.name.rstrip("0123456789") in _MEMORY_DISKS:
        what = f"{what} on {disk.name}, a disk in memory"
        yield Loss(Rung.D6, what, _MEMORY_LOSES, "device", str(disk))
        return
    below = [one for link in sorted(disk.glob("slaves/*")) if (one := _disk(link))]
    yield from _cache(disk, below, what)
    for one in below:
        yield from _of_disk(one, what, root, seen)
    backing = _text(disk / "loop/backing_file")
    if backing is not None:
        if backing in seen or not (root / backing.lstrip("/")).exists():
            yield f"where {backing} lies, the file behind {disk.name} of {what}"
        else:
            yield from _below(backing, f"{what}, in {backing},", root, seen | {backing})


def _cache(disk: Path, below: list[Path], what: str) -> Iterator[Found]:
    """Whether the kernel flushes the cache of a disk; and whose word it is, where it does not."""
    cache = _text(disk / _CACHE)
    if cache is None:
        yield f"whether {disk.name} of {what} has a cache that is flushed"
    if cache != "write through":
        return  # told to flush, it does; whether the device keeps its word is told by nobody
    own = [_text(one / _CACHE) for one in below] or [
        _text(one)
        for one in (disk / "cache_type", *sorted(disk.glob("device/scsi_disk/*/cache_type")))
    ]
    claims = [one for one in own if one is not None]
    for fall in machine_knobs()[_CACHE].fall if any("back" in one for one in claims) else ():
        text = f"{what} on {disk.name} with {_CACHE} = {cache}"
        yield Loss(fall.rung, text, fall.loses, "device", str(disk / _CACHE))
    if not claims:
        yield f"whether the cache of {disk.name} of {what} survives: no flush is sent to it"


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
