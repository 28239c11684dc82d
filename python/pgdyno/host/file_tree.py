"""Reads of a machine's file tree: /proc and /sys, or a test's copy of them."""

from __future__ import annotations

import os
from pathlib import Path

from pgdyno.linter import System
from pgdyno.target.host_facts import read_meminfo

_MAJOR = 18  # no file of the machine depends on it


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


def system(root: Path) -> System:
    """The machine as the linter judges by it."""
    release = os.uname().release.split("-")[0].split(".")[:2]
    memory = read_meminfo(text(root / "proc/meminfo"))
    return System(
        _MAJOR, tuple(int(part) for part in release),
        memory.get("MemTotal", 0), memory.get("Hugepagesize", 0),
    )  # fmt: skip
