"""Reads of a machine's file tree: /proc and /sys, or a test's copy of them."""

from __future__ import annotations

from pathlib import Path


def text(path: Path) -> str:
    """What a file holds; nothing where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def field(table: str, name: str) -> str:
    """The first value of a name in lines of `name: value`."""
    for line in table.splitlines():
        head, colon, value = line.partition(":")
        if colon and head.strip() == name:
            return value.strip()
    return ""


def folders(path: Path) -> list[Path]:
    """Folders in a folder, in order; none where there is none."""
    return sorted(one for one in path.iterdir() if one.is_dir()) if path.is_dir() else []
