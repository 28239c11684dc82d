"""Made-up builds for tests; nothing was compiled."""

from __future__ import annotations

from pgdyno.model.build import Build, Recipe
from pgdyno.model.settings import ServerFacts
from pgdyno.plan import Builds, PlanDraft, stage_builds

CPU = "Test CPU"
PLAIN = Recipe()


def a_build(ident: str, name: str | None = None, recipe: Recipe = PLAIN) -> Build:
    """A build of PostgreSQL 15.18."""
    told = f"{recipe.compiler} -O{recipe.optimise}"
    return Build(
        ident, name, "PostgreSQL 15.18", told, f"{recipe.compiler} 12", None, recipe,
        "/src/postgresql-15.18.tar.bz2", "d" * 64, int(ident, 16), {"compile": 60.0},
    )  # fmt: skip


def builds_of(draft: PlanDraft, facts: ServerFacts) -> Builds:
    """All the builds that a draft's stages name, as if they were there, with these settings."""
    words = dict.fromkeys(stage.build for stage in draft.document.stage if stage.build)
    made = [a_build(f"{number:012x}", word) for number, word in enumerate(words, start=1)]
    return Builds(stage_builds(draft, made, CPU), {build.ident: facts for build in made})
