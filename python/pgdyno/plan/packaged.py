"""Plans that come with pgdyno; each is found by its name, wherever pgdyno is installed."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from pgdyno.model.errors import PlanError
from pgdyno.model.text import visible
from pgdyno.plan.schema.files import did_you_mean

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
    if meant := did_you_mean(path, ".toml"):
        raise PlanError(
            f"plan {visible(str(source))} cannot be read: no such file or directory", meant
        )
    return path


def _paths() -> dict[str, Path]:
    return {path.stem: path for path in FOLDER.glob("*.toml")}
