"""A build: PostgreSQL compiled by us from a source, and how."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import AliasChoices, Field

_CALLED_BEFORE = Field(validation_alias=AliasChoices("recipe_text", "told"))  # in earlier records


@dataclass(frozen=True, slots=True)
class Recipe:
    """What is chosen for a build, beside its source."""

    compiler: str = "gcc"  # as it is called, perhaps with its path
    optimise: str = "2"  # -O
    native: bool = False  # -march=native: for this CPU only
    lto: bool = False
    pgo: bool = False  # compiled twice, trained by our own workload in between
    flags: str = ""  # further ones of the compiler
    block_kb: int = 8
    wal_block_kb: int = 8
    features: tuple[str, ...] = ()  # of configure's --with-…, sorted


@dataclass(frozen=True, slots=True)
class Build:
    """A build that is complete. `ident` is the hash of everything that shapes it."""

    ident: str
    name: str | None  # given by its user
    version: str  # e.g. "PostgreSQL 15.18"
    recipe_text: Annotated[str, _CALLED_BEFORE]  # for people, e.g. "gcc -O3 -flto=auto"
    compiler_version: str  # in the compiler's own words
    cpu: str | None  # the model it was compiled for; None: any of its kind
    recipe: Recipe
    source: str  # path, as given
    source_digest: str
    built_unix_ns: int
    seconds: dict[str, float]  # by phase: unpack, configure, compile, install, train

    @property
    def took_s(self) -> float:
        """Seconds of all phases."""
        return sum(self.seconds.values())

    @property
    def label(self) -> str:
        """What it is called: its name, or else its ident."""
        return self.name or self.ident
