"""The version stands in three files, which two package managers and Python read."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pgdyno
from pgdyno.model.version import VERSION

ROOT = Path(__file__).parents[3]


def test_all_say_the_same() -> None:
    python = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    rust = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    assert {python, rust, VERSION, pgdyno.__version__} == {VERSION}
