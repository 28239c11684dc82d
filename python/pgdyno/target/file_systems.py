"""Mounted file systems, and which of them a folder lies on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pgdyno.model.mount_words import mount_word


def existing(path: Path) -> Path:
    """The path itself, or the nearest folder above it that is there."""
    return path if path.exists() else existing(path.parent)


def file_system(path: Path) -> dict[str, str]:
    """Type, device and options of the file system that holds `path`, by the longest mount."""
    best = {"type": "unknown", "device": "unknown", "options": "", "mount": ""}
    real = str(path.resolve())
    for device, mount, kind, options in mounts(Path("/proc/mounts")):
        inside = real == mount or real.startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best["mount"]):
            best = {"type": kind, "device": device, "options": options, "mount": mount}
    return best


def mounts(table: Path) -> Iterator[tuple[str, str, str, str]]:
    """Device, place, type and options of each mount, as /proc/mounts has them."""
    try:
        text = table.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return
    for line in text.split("\n"):  # only that: names may hold what else separates lines
        words = line.split(" ")
        if len(words) >= 4:
            device, mount, kind, options = map(mount_word, words[:4])
            yield device, mount, kind, options
