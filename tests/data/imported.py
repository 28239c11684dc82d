"""Samples of other tools' output, with where they come from."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from pgdyno.imports.read import read
from pgdyno.imports.traps import checked
from pgdyno.model.imported import Imported, Warned

FOLDER = Path(__file__).parent / "imports"


@dataclass(frozen=True, slots=True)
class Sample:
    """A line of the index."""

    file: str
    tool: str
    version: str
    origin: str
    how: str

    @property
    def path(self) -> Path:
        """Where it lies."""
        return FOLDER / self.file


SAMPLES = tuple(
    Sample(**one) for one in tomllib.loads((FOLDER / "index.toml").read_text())["sample"]
)


def imported(*names: str) -> tuple[Imported, ...]:
    """What these samples hold, with the checks."""
    return checked([one for name in names for one in read(FOLDER / name)])


def warned(one: Imported, trap: str) -> Warned:
    """What a check says of a result."""
    return next(check for check in one.checks if check.trap == trap)
