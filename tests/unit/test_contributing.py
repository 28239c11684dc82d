"""CONTRIBUTING names the place where something is added: it is there, with what is said of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BELOW = (ROOT, ROOT / "python" / "pgdyno")
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_CODE = re.compile(r"`([^`]+)`")
_NAME = re.compile(r"(\w{4,})(\([a-z]*\))?")


def rows() -> list[tuple[str, str]]:
    """What is new, and the place for it."""
    table = TEXT.split("## To add something")[1].split("## ")[0]
    cells = [line.split("|") for line in table.splitlines() if line.startswith("| ")]
    return [(cell[1].strip(), cell[2]) for cell in cells[1:]]


def files(path: str) -> list[Path]:
    """Those that a path stands for, with any name for what is in angle brackets."""
    pattern = re.sub(r"<\w+>", "*", path).rstrip("/")
    found = [one for folder in BELOW for one in folder.glob(pattern)]
    inside = [one for folder in found if folder.is_dir() for one in folder.rglob("*.*")]
    return [one for one in (*found, *inside) if one.suffix in (".py", ".rs", ".toml")]


@pytest.mark.parametrize(("new", "place"), rows(), ids=lambda cell: cell[:30])
def test_the_place_is_there_and_has_what_is_said_of_it(new: str, place: str) -> None:
    named = _CODE.findall(place)
    paths = [one for one in named if "/" in one]
    there = [file for path in paths for file in files(path)]
    assert all(files(path) for path in paths), f"{new}: {paths}"
    texts = [file.read_text(encoding="utf-8") for file in there]
    for name in named:
        if there and (found := _NAME.fullmatch(name)):
            shown = found[1] + ("(" if found[2] else "")
            assert any(shown in text for text in texts), f"{new}: no {name} in {paths}"
