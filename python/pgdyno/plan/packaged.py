"""Plans that come with pgdyno; each is found by its name, wherever pgdyno is installed."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from pathlib import Path

from pgdyno.model.errors import PlanError
from pgdyno.model.text import visible

FOLDER = Path(__file__).parents[1] / "plans"
_FILES_MAX = 1000  # of a folder that are looked through for a name that is nearly meant


@dataclass(frozen=True, slots=True)
class Packaged:
    """A plan that comes with pgdyno."""

    name: str  # of its file, without `.toml`; what commands take
    question: str
    stages: int
    path: Path


def packaged_plans() -> list[Packaged]:
    """All of them, by name."""
    found = []
    for name, path in sorted(_paths().items()):
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
        found.append(Packaged(name, raw["question"], len(raw["stage"]), path))
    return found


def plan_path(source: str | Path) -> Path:
    """The file that is meant: a packaged plan where there is one of that name, else that path.

    A file of one's own that is called like a packaged plan is meant by `./demo`.

    Raises:
        PlanError: It is neither, but nearly the name of one, or of a file beside it.
    """
    known = _paths() if isinstance(source, str) else {}
    path = known.get(str(source), Path(source))
    close = get_close_matches(str(source), known, n=1)
    if close and path.parent == Path() and not path.exists():
        raise PlanError(
            f"plan {visible(str(source))} is no file here, and no plan that comes with pgdyno",
            f"Did you mean {close[0]}? `pgdyno plans` lists them all.",
        )
    if meant := _beside(path):
        raise PlanError(
            f"plan {visible(str(source))} cannot be read: no such file or directory",
            f"Did you mean {visible(str(meant))}?",
        )
    return path


def _beside(path: Path) -> Path | None:
    """The plan that lies where one of nearly its name was asked for; None: it is there, or none."""
    # These never fail, whatever the name is.
    if os.path.lexists(path) or not os.path.isdir(path.parent):
        return None
    files = {one.name for one in islice(path.parent.glob("*.toml"), _FILES_MAX)}
    close = get_close_matches(path.name, files, n=1)
    return path.parent / close[0] if close else None


def _paths() -> dict[str, Path]:
    return {path.stem: path for path in FOLDER.glob("*.toml")}
