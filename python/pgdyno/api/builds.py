"""Builds of PostgreSQL from source, kept below the home for plans to name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pgdyno.api.interrupts import interruptible
from pgdyno.api.notebook_line import with_line
from pgdyno.builder import compile as compiling
from pgdyno.builder.recipe import BLOCKS_KB, FEATURES, OPTIMISE, WAL_BLOCKS_KB, recipe_text
from pgdyno.builder.source import look
from pgdyno.builder.train import train
from pgdyno.model.bounds import require_within
from pgdyno.model.build import Build, Recipe
from pgdyno.plan.resolve.builds import find_build
from pgdyno.plan.resolve.plan import MAJORS
from pgdyno.shell import postgres_user
from pgdyno.target.home import home, locked_home, remove_folder
from pgdyno.target.kept_builds import build_bindir, build_folder, kept_builds

__all__ = [
    "BLOCKS_KB", "FEATURES", "MAJORS", "OPTIMISE", "WAL_BLOCKS_KB", "Build", "Built", "Recipe",
    "build", "builds", "remove_build",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Built:
    """A build, and whether it was there already."""

    build: Build
    is_known: bool

    @property
    def bindir(self) -> Path:
        """Its programs."""
        return build_bindir(home(), self.build.ident)


@with_line
def build(
    source: str | Path,
    recipe: Recipe,
    *,
    name: str | None = None,
    jobs: int | None = None,
    on_event: Callable[[str], None] = lambda _: None,
) -> Built:
    """Compile PostgreSQL into a build that stages of plans can name.

    Args:
        source: PostgreSQL's, of a version in `MAJORS`: a folder, or a tarball.
        recipe: Compiler, flags, features.
        name: What plans call it; None: its ident.
        jobs: Files that are compiled at once; None: one a CPU.
        on_event: Told what is compiled, and how far it is.

    Raises:
        PlanError: It is not the source of PostgreSQL, the recipe cannot be followed here, or no
            file at all would be compiled at once.
        TargetError: A step failed; its log is named.
        Interrupted: Ctrl-C; no half build is left.
    """
    if jobs is not None:
        require_within("jobs", jobs, 1, None, "Files are compiled one after the other with 1.")
    found, recipe = look(Path(source)), _in_order(recipe)
    head = f"PostgreSQL {found.version}, {recipe_text(recipe)}"
    how = compiling.How(name, jobs, lambda phase: on_event(f"{head}: {phase}"))
    with interruptible("stopped", "No half build is left."):
        return Built(*compiling.build(found, recipe, home(), postgres_user(), train, how))


def _in_order(recipe: Recipe) -> Recipe:
    """The same recipe in the one way that its hash knows."""
    flags, features = " ".join(recipe.flags.split()), tuple(sorted({*recipe.features}))
    return replace(recipe, flags=flags, features=features)


def builds() -> tuple[Build, ...]:
    """All builds that are kept, in the order in which they were made."""
    return kept_builds(home())


def remove_build(word: str) -> Build:
    """Remove a build with its logs; runs that were made with it can still be reported.

    Args:
        word: Its name, or the first characters of its ident.

    Raises:
        PlanError: There is none, or more than one.
        TargetError: Another pgdyno works in the home.
    """
    folder = home()
    one = find_build(word, kept_builds(folder))
    with locked_home(folder):  # a run may be using it
        remove_folder(build_folder(folder, one.ident))
    return one
