"""Plans that come with pgdyno; each is found by its name, wherever pgdyno is installed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "plans"


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
    """
    known = _paths() if isinstance(source, str) else {}
    return known.get(str(source), Path(source))


def _paths() -> dict[str, Path]:
    return {path.stem: path for path in FOLDER.glob("*.toml")}
