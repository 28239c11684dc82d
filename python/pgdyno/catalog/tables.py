"""Reads the catalogue's TOML files. What is wrong in them is a bug, and shows as one."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Any

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of the catalogue: strict, frozen, no unknown keys. Arrays become tuples."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def read_table(name: str) -> dict[str, Any]:
    """One TOML file under `data/`, by its name without its ending."""
    path = files("pgdyno.catalog").joinpath("data", f"{name}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def read_tables(folder: str) -> dict[str, dict[str, Any]]:
    """All TOML files of a folder under `data/`, by the file's name without its ending."""
    found = sorted(files("pgdyno.catalog").joinpath("data", folder).iterdir(), key=str)
    return {
        path.name.removesuffix(".toml"): tomllib.loads(path.read_text(encoding="utf-8"))
        for path in found
        if path.name.endswith(".toml")
    }
